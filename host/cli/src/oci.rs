//! Plugins in registries of OCI artifacts, as `wkg`, `oras` and `cosign` keep them.
//!
//! A plugin is an artifact with one layer: a component, or an archive of sources. It is fetched
//! here, and uploaded to the server like a file: no server asks a registry. `reference` has the
//! names of artifacts, `access` the flags, `registry` the calls, `credentials` those of `docker
//! login`, and `publish` puts a plugin into a registry.
//!
//! Invariant: what is fetched has the digest by which it was named, or it is an error.

mod access;
mod credentials;
mod publish;
mod reference;
mod registry;

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gristmill_client::block_on;
use gristmill_client::http::StatusCode;
use gristmill_client::http::header::ACCEPT;
use gristmill_core::Digest;
use gristmill_state::PluginSignature;
use serde_json::Value;

pub(crate) use self::access::{RegistryAccess, arguments};
pub(crate) use self::publish::publish;
pub(crate) use self::reference::{Reference, Version};
use self::registry::{Call, Registry};
use crate::output::escaped;
use crate::progress::Progress;

/// The forms of manifests that are understood, or refused with what they are.
const MANIFEST_TYPES: &str = "application/vnd.oci.image.manifest.v1+json, \
                              application/vnd.docker.distribution.manifest.v2+json, \
                              application/vnd.oci.image.index.v1+json";

/// Maximum bytes of a manifest, as the specification has them.
const MANIFEST_BYTES_MAX: usize = 4 << 20;

/// Maximum bytes of a plugin, which is kept in memory.
const LAYER_BYTES_MAX: u64 = 256 << 20;

/// Maximum signatures of an artifact that are looked at, and maximum bytes of what each is over.
const SIGNATURES_MAX: usize = 16;
const PAYLOAD_BYTES_MAX: u64 = 8 << 10;

/// The annotation with which cosign keeps a signature.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

/// A plugin that was fetched.
pub(crate) struct Pulled {
    /// Its name with the digest of its manifest.
    pub(crate) reference: Reference,
    pub(crate) file: Bytes,
    /// The signatures that cosign keeps beside it.
    pub(crate) signatures: Vec<PluginSignature>,
}

/// A part of an artifact, as a manifest names it.
struct Descriptor {
    digest: Digest,
    bytes: u64,
}

/// Fetch a plugin, and say which one a tag means.
///
/// # Errors
/// The registry does not have it or does not give it, or sends something else.
pub(crate) fn pull(reference: &Reference, access: &RegistryAccess) -> Result<Pulled> {
    let waiting = Progress::wait(&format!("fetching {reference}"));
    let pulled = block_on(fetch(reference, access));
    drop(waiting);
    let pulled = pulled.with_context(|| format!("cannot fetch {reference}"))?;
    if let (Version::Tag(_), Version::Digest(digest)) =
        (&reference.version, &pulled.reference.version)
    {
        eprintln!("{reference} is {digest}");
    }
    Ok(pulled)
}

async fn fetch(reference: &Reference, access: &RegistryAccess) -> Result<Pulled> {
    let mut registry = Registry::of(reference, access)?;
    let manifest = manifest(&mut registry, &reference.version).await?;
    let manifest = manifest.context("the registry does not have it")?;
    let digest = Digest::of(&manifest);
    let document: Value = serde_json::from_slice(&manifest).context("its manifest is not JSON")?;
    ensure!(
        !document["manifests"].is_array(),
        "it is an index of several artifacts: name one of them by its digest"
    );
    let layers = document["layers"].as_array().map_or(&[][..], Vec::as_slice);
    let [layer] = layers else {
        bail!("it has {} layers: a plugin is an artifact with one layer", layers.len());
    };
    let layer = Descriptor::of(layer, LAYER_BYTES_MAX).context("its layer")?;
    let file = layer.fetch(&mut registry).await.context("its layer")?;
    let signatures = signatures(&mut registry, digest, &manifest);
    let signatures = signatures.await.context("its signatures")?;
    Ok(Pulled { reference: reference.by_digest(digest), file, signatures })
}

/// A manifest, with its digest checked. None if it is not there.
async fn manifest(registry: &mut Registry, version: &Version) -> Result<Option<Bytes>> {
    let path = format!("manifests/{version}");
    let headers = [(ACCEPT, MANIFEST_TYPES)];
    let answer = registry.call(Call::get(&path, &headers, MANIFEST_BYTES_MAX)).await?;
    if answer.status == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    let answer = registry.succeeded(answer, &format!("the manifest {version}"))?;
    let sent = Digest::of(&answer.body);
    let claimed = answer.header("docker-content-digest");
    let named = match version {
        Version::Digest(digest) => Some(digest.to_string()),
        Version::Tag(_) => Some(claimed.to_owned()).filter(|claimed| !claimed.is_empty()),
    };
    if let Some(named) = named.filter(|named| *named != sent.to_string()) {
        bail!("the manifest should be {}, but what the registry sends is {sent}", escaped(&named));
    }
    Ok(Some(answer.body))
}

/// The signatures that cosign keeps at a tag beside the artifact.
async fn signatures(
    registry: &mut Registry,
    digest: Digest,
    signed: &[u8],
) -> Result<Vec<PluginSignature>> {
    let tag = Version::Tag(format!("sha256-{}.sig", digest.hex()));
    let Some(found) = manifest(registry, &tag).await? else { return Ok(Vec::new()) };
    let document: Value = serde_json::from_slice(&found).context("their manifest is not JSON")?;
    let layers = document["layers"].as_array().map_or(&[][..], Vec::as_slice);
    let mut signatures = Vec::new();
    // The newest are at the end.
    for layer in &layers[layers.len().saturating_sub(SIGNATURES_MAX)..] {
        let Some(signature) = layer["annotations"][SIGNATURE].as_str() else { continue };
        let signature = STANDARD.decode(signature).context("a signature is not Base64")?;
        let payload = Descriptor::of(layer, PAYLOAD_BYTES_MAX)?.fetch(registry).await?;
        let (payload, signed) = (payload.to_vec(), signed.to_vec());
        signatures.push(PluginSignature::of_artifact(signature, payload, signed));
    }
    Ok(signatures)
}

impl Descriptor {
    /// As a manifest has it.
    fn of(document: &Value, bytes_max: u64) -> Result<Self> {
        let digest = document["digest"].as_str().and_then(|text| text.parse().ok());
        let digest = digest.context("its digest is not one of SHA-256")?;
        let bytes = document["size"].as_u64().context("its size is missing")?;
        ensure!(bytes <= bytes_max, "it has {bytes} bytes: the limit is {bytes_max}");
        Ok(Self { digest, bytes })
    }

    async fn fetch(&self, registry: &mut Registry) -> Result<Bytes> {
        let Self { digest, bytes } = self;
        let path = format!("blobs/{digest}");
        let limit = usize::try_from(*bytes).unwrap_or(usize::MAX);
        let answer = registry.call(Call::get(&path, &[], limit)).await?;
        let content = registry.succeeded(answer, &format!("the content {digest}"))?.body;
        let (sent, length) = (Digest::of(&content), content.len());
        ensure!(
            sent == *digest && length == limit,
            "it should be {digest} with {bytes} bytes, but what the registry sends is {sent} with \
             {length}"
        );
        Ok(content)
    }
}

/// The path under which a fetched plugin is shown.
pub(crate) fn shown(reference: &Reference) -> PathBuf {
    reference.to_string().into()
}
