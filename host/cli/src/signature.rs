//! The signatures of plugins, as they are sent to a server.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gristmill_core::Digest;
use gristmill_state::{PluginSignature, Signer};
use serde_json::Value;

/// Maximum bytes of a file with a signature. One of ECDSA P-256 has some 72.
const FILE_BYTES_MAX: usize = 1 << 10;

/// The signature over a plugin's file in a file of its own: as `openssl` writes it, or as Base64,
/// as cosign does.
pub(crate) fn read(path: &Path) -> Result<PluginSignature> {
    let failed = || path.display().to_string();
    let bytes = std::fs::read(path).with_context(failed)?;
    ensure!(
        !bytes.is_empty() && bytes.len() <= FILE_BYTES_MAX,
        "{} has {} bytes: it is not a signature",
        path.display(),
        bytes.len()
    );
    let text = std::str::from_utf8(&bytes).ok();
    let decoded = text.and_then(|text| STANDARD.decode(text.trim()).ok());
    Ok(PluginSignature::of_file(decoded.unwrap_or(bytes)))
}

/// The signers in a tenant's document. The server checks them, so faults do not matter here.
pub(crate) fn signers(document: &Value) -> Vec<Signer> {
    let keys = document["plugin_signers"].as_array().into_iter().flatten();
    keys.filter_map(|key| key.as_str()?.to_owned().try_into().ok()).collect()
}

/// The signature to send for the file of this digest, of those that a registry has: one that a
/// signer made, or the newest one, of which the server says what is wrong with it.
pub(crate) fn choose(
    signatures: &[PluginSignature],
    signers: &[Signer],
    digest: Digest,
) -> Option<PluginSignature> {
    let counts = |signature: &&PluginSignature| {
        (*signature).clone().find_signers(signers, digest, &[]).is_ok()
    };
    signatures.iter().find(counts).or(signatures.last()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_read_as_both_tools_write_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sig");
        let read = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            read(&path).map_err(|error| error.to_string())
        };
        let signature = PluginSignature::of_file(vec![0x30, 0x45, 0xff]);
        assert_eq!(read(&[0x30, 0x45, 0xff]), Ok(signature.clone()));
        assert_eq!(read(b"MEX/\n"), Ok(signature));
        for wrong in [&b""[..], &[0x30; 2000]] {
            assert!(read(wrong).unwrap_err().contains("is not a signature"));
        }
    }
}
