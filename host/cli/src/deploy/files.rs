//! The files of a manifest: folders are built, and each file is read once for its digest.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use gristmill_core::Digest;

use super::manifest::{ContentSource, Manifest};
use crate::file_upload::HashedFile;
use crate::plugin::build::{Built, build, sources};

/// The digests of all sources of a manifest, and the files behind them.
#[derive(Debug, Default)]
pub(crate) struct Files {
    digests: BTreeMap<ContentSource, Digest>,
    by_digest: BTreeMap<Digest, HashedFile>,
}

impl Files {
    /// Build and read what the manifest names. A folder whose sources are among those of a plugin
    /// `on_server`, which has the digests of sources with those of the files, is not built again.
    ///
    /// # Errors
    /// A plugin cannot be built, or a file cannot be read. The position in the manifest is named.
    pub(crate) fn of(manifest: &Manifest, on_server: &BTreeMap<Digest, Digest>) -> Result<Self> {
        let models = manifest.models.values().map(|model| (&model.source, &model.position));
        let tenants = manifest.tenants.values();
        let of_tenants =
            tenants.flat_map(|tenant| tenant.plugins.values().chain(tenant.assets.values()));
        let of_tenants = of_tenants.map(|file| (&file.source, &file.position));
        let mut files = Self::default();
        for (source, position) in models.chain(of_tenants) {
            files.add(source, on_server).with_context(|| position.to_string())?;
        }
        Ok(files)
    }

    /// The digest of a source.
    pub(crate) fn digest(&self, source: &ContentSource) -> Option<Digest> {
        self.digests.get(source).copied()
    }

    /// The file of this content, if it is on this machine.
    pub(crate) fn file(&self, digest: Digest) -> Option<&HashedFile> {
        self.by_digest.get(&digest)
    }

    /// Files that are on the server.
    #[cfg(test)]
    pub(crate) fn of_digests(digests: impl IntoIterator<Item = Digest>) -> Self {
        let digests = digests.into_iter().map(|digest| (ContentSource::Digest(digest), digest));
        Self { digests: digests.collect(), by_digest: BTreeMap::new() }
    }

    fn add(&mut self, source: &ContentSource, on_server: &BTreeMap<Digest, Digest>) -> Result<()> {
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
            ContentSource::Model(path) => HashedFile::read_model(path)?,
            ContentSource::File(path) => HashedFile::read(path)?,
        };
        self.digests.insert(source.clone(), file.digest);
        self.by_digest.insert(file.digest, file);
        Ok(())
    }
}
