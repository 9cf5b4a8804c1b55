//! The files of a manifest: folders are built, and each file is read once for its digest.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use gristmill_core::Digest;
use gristmill_state::{PluginSignature, Signer};

use super::manifest::{ContentSource, Manifest, TenantFile};
use crate::file_upload::HashedFile;
use crate::oci::{self, RegistryAccess};
use crate::plugin::build::{Built, build, sources};
use crate::signature;

/// The digests of all sources of a manifest, and the files behind them.
#[derive(Debug, Default)]
pub(crate) struct Files {
    digests: BTreeMap<ContentSource, Digest>,
    by_digest: BTreeMap<Digest, HashedFile>,
    /// Those that registries have, by the digests of the plugins' files.
    signatures: BTreeMap<Digest, Vec<PluginSignature>>,
    /// Those in files of their own. Two tenants can have the same plugin, signed by other keys.
    signature_files: BTreeMap<PathBuf, PluginSignature>,
}

impl Files {
    /// Build, fetch and read what the manifest names. A folder whose sources are among those of a
    /// plugin `on_server`, which has the digests of sources with those of the files, is not built
    /// again.
    ///
    /// # Errors
    /// A plugin cannot be built or fetched, or a file cannot be read. The position in the manifest
    /// is named.
    pub(crate) fn of(
        manifest: &Manifest,
        on_server: &BTreeMap<Digest, Digest>,
        registries: &RegistryAccess,
    ) -> Result<Self> {
        let models = manifest.models.values().map(|model| (&model.source, &model.position));
        let tenants = manifest.tenants.values();
        let of_tenants =
            tenants.flat_map(|tenant| tenant.plugins.values().chain(tenant.assets.values()));
        let mut files = Self::default();
        for (source, position) in models {
            files.add(source, on_server, registries).with_context(|| position.to_string())?;
        }
        for file in of_tenants {
            let failed = || file.position.to_string();
            files.add(&file.source, on_server, registries).with_context(failed)?;
            if let Some(path) = &file.signature {
                let signature = signature::read(path).with_context(failed)?;
                files.signature_files.insert(path.clone(), signature);
            }
        }
        Ok(files)
    }

    /// The digest of a source.
    pub(crate) fn digest(&self, source: &ContentSource) -> Option<Digest> {
        self.digests.get(source).copied()
    }

    /// The signature of this plugin to send to a tenant with these signers.
    pub(crate) fn signature(
        &self,
        plugin: &TenantFile,
        signers: &[Signer],
    ) -> Option<PluginSignature> {
        if let Some(path) = &plugin.signature {
            return self.signature_files.get(path).cloned();
        }
        let digest = self.digest(&plugin.source)?;
        signature::choose(self.signatures.get(&digest)?, signers, digest)
    }

    /// The file of this content, if it is on this machine.
    pub(crate) fn file(&self, digest: Digest) -> Option<&HashedFile> {
        self.by_digest.get(&digest)
    }

    /// Files that are on the server.
    #[cfg(test)]
    pub(crate) fn of_digests(digests: impl IntoIterator<Item = Digest>) -> Self {
        let digests = digests.into_iter().map(|digest| (ContentSource::Digest(digest), digest));
        Self { digests: digests.collect(), ..Self::default() }
    }

    fn add(
        &mut self,
        source: &ContentSource,
        on_server: &BTreeMap<Digest, Digest>,
        registries: &RegistryAccess,
    ) -> Result<()> {
        if self.digests.contains_key(source) {
            return Ok(());
        }
        let file = match source {
            ContentSource::Digest(digest) => {
                self.digests.insert(source.clone(), *digest);
                return Ok(());
            }
            ContentSource::Folder(folder) => {
                let built = sources(folder)?.and_then(|sources| on_server.get(&sources));
                if let Some(digest) = built {
                    self.digests.insert(source.clone(), *digest);
                    return Ok(());
                }
                eprintln!("building {}", folder.display());
                let Built { path, .. } = build(folder, None)?;
                HashedFile::read(&path)?
            }
            ContentSource::Artifact(reference) => {
                let pulled = oci::pull(reference, registries)?;
                let file = HashedFile::fetched(&oci::shown(&pulled.reference), pulled.file)?;
                self.signatures.entry(file.digest).or_default().extend(pulled.signatures);
                file
            }
            ContentSource::Model(path) => HashedFile::read_model(path)?,
            ContentSource::File(path) => HashedFile::read(path)?,
        };
        self.digests.insert(source.clone(), file.digest);
        self.by_digest.insert(file.digest, file);
        Ok(())
    }
}
