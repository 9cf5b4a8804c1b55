//! The signature of a plugin, as it comes with a request.
//!
//! It is over the plugin's file, or over the payload that cosign makes for an artifact in a
//! registry. The payload names the digest of the artifact's manifest, and the manifest names the
//! digest of its layer, the plugin's file. So the request brings the payload and the manifest, and
//! no registry is asked.
//!
//! Invariant: a signature counts for a file only if all of this chain was checked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gristmill_core::Digest;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::release::document::Document;
use crate::release::plugin_signers::Signer;

/// Maximum characters of a signature with its payload and its manifest, as Base64.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// What cosign's payloads say they are.
const COSIGN_TYPE: &str = "cosign container image signature";

/// The signature of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginSignature {
    signature: Vec<u8>,
    /// None if the signature is over the plugin's file.
    artifact: Option<SignedArtifact>,
    /// The keys that are known to have made it.
    made_by: Vec<Signer>,
}

/// The documents between a signature and a file in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SignedArtifact {
    payload: Vec<u8>,
    manifest: Vec<u8>,
}

/// The signature of a plugin in a request.
#[derive(Serialize, ToSchema)]
#[schema(as = PluginSignature)]
pub struct PluginSignatureDocument {
    /// The signature as Base64: of ECDSA P-256 with SHA-256, in ASN.1, or of Ed25519. It is over
    /// the payload, or without one over the plugin's file.
    pub signature: String,
    /// The payload that cosign signed, as Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The manifest that the payload names, as Base64. Its only layer is the plugin's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
}

/// Why a plugin does not count as signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureFault {
    /// The request has no signature.
    #[error(
        "it has no signature: sign its file (`openssl dgst -sha256 -sign KEY -out FILE.sig FILE`) and \
         push it with --signature FILE.sig, or sign it in a registry (`cosign sign --key KEY`) and push \
         it from there (oci://...)"
    )]
    Missing,
    /// None of the tenant's keys made the signature.
    #[error(
        "none of the keys in plugin_signers made its signature: sign it with one of them, or add the \
         key to the tenant's document"
    )]
    OtherKey,
    /// The payload is not one of cosign's.
    #[error("the payload of its signature is not one of cosign's: {0}")]
    Payload(&'static str),
    /// The payload is that of another manifest.
    #[error("its signature is for the manifest {signed}, but {sent} was sent")]
    OtherManifest {
        /// The digest in the payload.
        signed: String,
        /// The digest of the manifest.
        sent: Digest,
    },
    /// The manifest is not that of a plugin.
    #[error("the manifest of its signature is not that of a plugin: it must have one layer")]
    Manifest,
    /// The manifest is that of another file.
    #[error("its signature is for the file {signed}, but the file is {sent}")]
    OtherFile {
        /// The digest of the layer.
        signed: String,
        /// The digest of the file.
        sent: Digest,
    },
}

impl PluginSignature {
    /// A signature over the plugin's file.
    pub fn of_file(signature: Vec<u8>) -> Self {
        Self { signature, artifact: None, made_by: Vec::new() }
    }

    /// A signature over cosign's `payload` for an artifact with this `manifest`.
    pub fn of_artifact(signature: Vec<u8>, payload: Vec<u8>, manifest: Vec<u8>) -> Self {
        let artifact = Some(SignedArtifact { payload, manifest });
        Self { signature, artifact, made_by: Vec::new() }
    }

    /// Read it from the document that [`Self::document`] makes. None if it has faults.
    pub fn read(document: &mut Document) -> Option<Self> {
        let mut bytes = |key: &'static str| {
            let text = document.text(key)?;
            if text.len() > TEXT_BYTES_MAX {
                document.fault(key, format_args!(" is longer than {TEXT_BYTES_MAX} characters"));
                return None;
            }
            let bytes = STANDARD.decode(text).ok();
            if bytes.is_none() {
                document.fault(key, " must be Base64");
            }
            bytes
        };
        let signature = bytes("signature");
        let (payload, manifest) = (bytes("payload"), bytes("manifest"));
        let signature = document.require("signature", signature);
        let artifact = match (payload, manifest) {
            (None, None) => None,
            (payload, manifest) => {
                let payload = document.require("payload", payload);
                let manifest = document.require("manifest", manifest);
                payload
                    .zip(manifest)
                    .map(|(payload, manifest)| SignedArtifact { payload, manifest })
            }
        };
        let is_whole = !document.has_faults();
        signature.filter(|_| is_whole).map(|signature| Self {
            signature,
            artifact,
            made_by: Vec::new(),
        })
    }

    /// It, as requests have it.
    pub fn document(&self) -> PluginSignatureDocument {
        let text = |bytes: &Vec<u8>| STANDARD.encode(bytes);
        PluginSignatureDocument {
            signature: text(&self.signature),
            payload: self.artifact.as_ref().map(|artifact| text(&artifact.payload)),
            manifest: self.artifact.as_ref().map(|artifact| text(&artifact.manifest)),
        }
    }

    /// Whether it is over the plugin's file.
    pub fn is_of_file(&self) -> bool {
        self.artifact.is_none()
    }

    /// Find the `signers` that made it for the file of this digest. `file` has the bytes of the
    /// file, which only a signature over them needs.
    ///
    /// # Errors
    /// It is for another file, or none of the signers made it.
    pub fn find_signers(
        &mut self,
        signers: &[Signer],
        digest: Digest,
        file: &[u8],
    ) -> Result<(), SignatureFault> {
        let message = match &self.artifact {
            Some(artifact) => artifact.check(digest)?,
            None => file,
        };
        let made = signers.iter().filter(|signer| signer.has_signed(message, &self.signature));
        self.made_by = made.cloned().collect();
        match self.made_by.is_empty() {
            true => Err(SignatureFault::OtherKey),
            false => Ok(()),
        }
    }

    /// Whether one of these keys is known to have made it.
    pub fn is_by(&self, signers: &[Signer]) -> bool {
        self.made_by.iter().any(|signer| signers.contains(signer))
    }
}

impl SignedArtifact {
    /// Check that it leads to the file. Returns what was signed.
    fn check(&self, digest: Digest) -> Result<&[u8], SignatureFault> {
        let payload = object(&self.payload).ok_or(SignatureFault::Payload("it is not JSON"))?;
        let critical = &payload["critical"];
        if critical["type"] != COSIGN_TYPE {
            return Err(SignatureFault::Payload("critical.type is another one"));
        }
        let signed = critical["image"]["docker-manifest-digest"].as_str();
        let signed = signed.ok_or(SignatureFault::Payload("it names no manifest"))?;
        let sent = Digest::of(&self.manifest);
        if signed != sent.to_string() {
            return Err(SignatureFault::OtherManifest { signed: cut(signed), sent });
        }
        let manifest = object(&self.manifest).ok_or(SignatureFault::Manifest)?;
        let layers = manifest["layers"].as_array().map_or(&[][..], Vec::as_slice);
        let [layer] = layers else { return Err(SignatureFault::Manifest) };
        let signed = layer["digest"].as_str().ok_or(SignatureFault::Manifest)?;
        match signed == digest.to_string() {
            true => Ok(&self.payload),
            false => Err(SignatureFault::OtherFile { signed: cut(signed), sent: digest }),
        }
    }
}

/// A JSON object, as a value that can be asked for any key.
fn object(text: &[u8]) -> Option<Value> {
    serde_json::from_slice::<Map<String, Value>>(text).ok().map(Value::Object)
}

/// A text for a message.
fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests;
