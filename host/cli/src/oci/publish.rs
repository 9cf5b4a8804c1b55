//! Putting a plugin into a registry.

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use gristmill_client::block_on;
use gristmill_client::http::Method;
use gristmill_client::http::header::{CONTENT_TYPE, LOCATION};
use gristmill_core::Digest;
use gristmill_sandbox::is_archive;
use serde_json::{Value, json};

use super::access::RegistryAccess;
use super::reference::{Reference, Version};
use super::registry::{Call, Endpoint, Registry};
use crate::progress::Progress;

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// The media types of a component and its description (the CNCF's layout of WebAssembly artifacts).
const WASM: &str = "application/wasm";
const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";

/// The media type of an archive of sources, and that of a description that says nothing.
const SOURCES: &str = "application/vnd.gristmill.plugin.sources.v1+tar";
const EMPTY_CONFIG: &str = "application/vnd.oci.empty.v1+json";

/// Put a plugin into a registry under the reference's tag. Returns its name by its digest.
///
/// # Errors
/// The reference has no tag, or the registry does not take it.
pub(crate) fn publish(
    file: Vec<u8>,
    reference: &Reference,
    access: &RegistryAccess,
) -> Result<Reference> {
    let Version::Tag(tag) = &reference.version else {
        bail!("{reference} names a digest: a plugin is published under a tag (:tag)");
    };
    let _waiting = Progress::wait(&format!("publishing {reference}"));
    let put = put(file.into(), reference, (tag, access));
    block_on(put).with_context(|| format!("cannot publish {reference}"))
}

async fn put(
    file: Bytes,
    reference: &Reference,
    (tag, access): (&str, &RegistryAccess),
) -> Result<Reference> {
    let mut registry = Registry::of(reference, access)?;
    let digest = Digest::of(&file);
    let (layer_type, config_type, config) = match is_archive(&file) {
        true => (SOURCES, EMPTY_CONFIG, json!({})),
        false => {
            let config =
                json!({ "architecture": "wasm", "os": "wasip2", "layerDigests": [digest] });
            (WASM, WASM_CONFIG, config)
        }
    };
    let config = Bytes::from(config.to_string());
    let descriptor = |media_type: &str, content: &Bytes| {
        let (digest, size) = (Digest::of(content), content.len());
        json!({ "mediaType": media_type, "digest": digest, "size": size })
    };
    let mut manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": descriptor(config_type, &config),
        "layers": [descriptor(layer_type, &file)],
    });
    if config_type == EMPTY_CONFIG {
        manifest["artifactType"] = Value::from(layer_type);
    }
    for content in [config, file] {
        upload(&mut registry, content).await?;
    }
    let manifest = Bytes::from(manifest.to_string());
    let (digest, path) = (Digest::of(&manifest), format!("manifests/{tag}"));
    let headers = [(CONTENT_TYPE, MANIFEST_TYPE)];
    let put = Call::send(Method::PUT, Endpoint::Below(&path), &headers, manifest);
    let answer = registry.call(put).await?;
    registry.succeeded(answer, "to put a manifest")?;
    Ok(reference.by_digest(digest))
}

/// Upload content in one piece.
async fn upload(registry: &mut Registry, content: Bytes) -> Result<()> {
    let digest = Digest::of(&content);
    let begin = Call::send(Method::POST, Endpoint::Below("blobs/uploads/"), &[], Bytes::new());
    let begun = registry.call(begin).await?;
    let begun = registry.succeeded(begun, "to begin an upload")?;
    let location = begun.header(LOCATION.as_str());
    ensure!(!location.is_empty(), "the registry does not say where to upload {digest}");
    let mark = if location.contains('?') { '&' } else { '?' };
    let url = format!("{location}{mark}digest={digest}");
    let headers = [(CONTENT_TYPE, "application/octet-stream")];
    let put = Call::send(Method::PUT, Endpoint::Url(&url), &headers, content);
    let answer = registry.call(put).await?;
    registry.succeeded(answer, &format!("to upload {digest}"))?;
    Ok(())
}
