//! The keys of those who may sign a tenant's plugins: the key `plugin_signers` of its document.
//!
//! A key is written as `cosign generate-key-pair` and `openssl pkey -pubout` write it: a
//! SubjectPublicKeyInfo in PEM. Its two forms begin with fixed bytes, so no parser of ASN.1 is
//! needed.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ECDSA_P256_SHA256_ASN1, ED25519, UnparsedPublicKey, VerificationAlgorithm};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::release::document::Document;

/// The key of a tenant's document.
const SIGNERS: &str = "plugin_signers";

/// Maximum signers of a tenant. A signature is tried with each.
const SIGNERS_MAX: usize = 8;

const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";
const PEM_COLUMNS: usize = 64;

/// Maximum bytes of a key in PEM. The longer of the two forms has less than 200.
const PEM_BYTES_MAX: usize = 1 << 10;

/// The bytes before the point of an ECDSA key (RFC 5480): id-ecPublicKey, prime256v1.
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// The bytes before an Ed25519 key (RFC 8410).
const ED25519_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The bytes of an uncompressed point of P-256, and its first one.
const P256_BYTES: usize = 65;
const UNCOMPRESSED: u8 = 4;

const ED25519_BYTES: usize = 32;

/// A public key. Its signatures are those of ECDSA with SHA-256, in ASN.1, or of Ed25519.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Signer {
    algorithm: Algorithm,
    key: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    P256,
    Ed25519,
}

/// A text that is not the key of a signer.
#[derive(Debug, thiserror::Error)]
#[error(
    "must be a public key in PEM, as cosign.pub has it: {PEM_BEGIN}, and a key of ECDSA P-256 or \
     Ed25519"
)]
pub struct InvalidSigner;

impl Algorithm {
    fn prefix(self) -> &'static [u8] {
        match self {
            Self::P256 => &P256_PREFIX,
            Self::Ed25519 => &ED25519_PREFIX,
        }
    }
}

impl Signer {
    /// Whether the signature over `message` is of this key.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &dyn VerificationAlgorithm = match self.algorithm {
            Algorithm::P256 => &ECDSA_P256_SHA256_ASN1,
            Algorithm::Ed25519 => &ED25519,
        };
        UnparsedPublicKey::new(algorithm, &self.key).verify(message, signature).is_ok()
    }

    fn of_der(der: &[u8]) -> Option<Self> {
        let key = |algorithm: Algorithm| {
            let key = der.strip_prefix(algorithm.prefix())?.to_vec();
            Some(Self { algorithm, key })
        };
        let is_point = |signer: &Self| {
            signer.key.len() == P256_BYTES && signer.key.first() == Some(&UNCOMPRESSED)
        };
        let p256 = key(Algorithm::P256).filter(is_point);
        p256.or_else(|| key(Algorithm::Ed25519).filter(|signer| signer.key.len() == ED25519_BYTES))
    }
}

impl TryFrom<String> for Signer {
    type Error = InvalidSigner;

    fn try_from(pem: String) -> Result<Self, InvalidSigner> {
        let text = Some(pem.trim()).filter(|text| text.len() <= PEM_BYTES_MAX);
        let text = text.and_then(|text| text.strip_prefix(PEM_BEGIN)?.strip_suffix(PEM_END));
        let lines = text.ok_or(InvalidSigner)?.split_ascii_whitespace();
        let der = STANDARD.decode(lines.collect::<String>()).map_err(|_| InvalidSigner)?;
        Self::of_der(&der).ok_or(InvalidSigner)
    }
}

/// As `openssl` writes it.
impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let der = [self.algorithm.prefix(), &self.key].concat();
        let text = STANDARD.encode(der);
        writeln!(f, "{PEM_BEGIN}")?;
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(PEM_COLUMNS));
            writeln!(f, "{line}")?;
            rest = after;
        }
        writeln!(f, "{PEM_END}")
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({:?})", self.to_string())
    }
}

impl From<Signer> for String {
    fn from(signer: Signer) -> Self {
        signer.to_string()
    }
}

/// The signers of a tenant's document.
pub fn read_signers(document: &mut Document) -> Vec<Signer> {
    let signer = |item: &Value| {
        let text = item.as_str().ok_or_else(|| format!(" {InvalidSigner}"))?;
        Signer::try_from(text.to_owned()).map_err(|error| format!(" {error}"))
    };
    let signers = document.list(SIGNERS, signer).unwrap_or_default();
    let count = signers.len();
    if count > SIGNERS_MAX {
        document.fault(SIGNERS, format_args!(" has {count} keys: the limit is {SIGNERS_MAX}"));
    }
    for (index, signer) in signers.iter().enumerate() {
        if signers[..index].contains(signer) {
            document.fault(&format!("{SIGNERS}[{index}]"), " is there twice");
        }
    }
    signers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Made with `openssl ecparam` and `openssl genpkey`.
    const P256: &str = "\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZbvBOvWsKmVczBXkqD+KnMB+Bq/S
WQXUoirqfRRjsXNJnbcRc+AquZ0YUcop8StXjdJ1hbtK3juBE8biRfGRGw==
-----END PUBLIC KEY-----
";
    const OF_ED25519: &str = "\
-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAvVjk/YFOhTMQU6xtiV1cnbXfWXoi6GsOgmHLY+a/JYI=
-----END PUBLIC KEY-----
";
    const P384: &str = "\
-----BEGIN PUBLIC KEY-----
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEl2VHGObPKpMFHQA182r/vY7dsUkozyO6
UcNR/JFEurULakrLSL0zSf4kuZTeG8Z5mqF75WhTqBlp0EapHySqreSgwXRB+JXy
3LykG0dGPokwWLx5wU3etA93eulApsO4
-----END PUBLIC KEY-----
";

    fn read(signers: Value) -> (Vec<Signer>, Vec<String>) {
        let Value::Object(keys) = json!({ "plugin_signers": signers }) else { unreachable!() };
        let mut document = Document::new(keys);
        let signers = read_signers(&mut document);
        (signers, document.finish().into_texts())
    }

    #[test]
    fn keys_are_read_as_openssl_writes_them() {
        let (signers, faults) = read(json!([P256, OF_ED25519]));
        assert_eq!(faults, [""; 0]);
        assert_eq!(serde_json::to_value(&signers).unwrap(), json!([P256, OF_ED25519]));
        let again: Vec<Signer> = serde_json::from_value(json!([P256, OF_ED25519])).unwrap();
        assert_eq!(again, signers);
        // As it came over a form or another system.
        assert_eq!(read(json!([P256.replace('\n', "\r\n")])).0, signers[..1]);
        assert_eq!(read(json!([P256.trim_end()])).0, signers[..1]);
    }

    #[test]
    fn other_texts_are_refused_by_their_places() {
        let private = P256.replace("PUBLIC", "PRIVATE");
        let long = format!("{PEM_BEGIN}{}{PEM_END}", "A".repeat(4096));
        for wrong in ["", "a key", P384, private.as_str(), long.as_str(), &P256[..80]] {
            let (_, faults) = read(json!([P256, wrong]));
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].starts_with("plugin_signers[1] must be a public key"), "{faults:?}");
        }
        assert_eq!(read(json!([P256, P256])).1, ["plugin_signers[1] is there twice"]);
        assert_eq!(read(json!([7])).1.len(), 1);
        assert_eq!(read(json!(P256)).1.len(), 1);
    }
}
