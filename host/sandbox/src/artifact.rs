//! Compiled code, cached on disk by the component's digest and the engine's compatibility hash.
//!
//! Invariant: a file appears under its final name only whole (written aside, synced, renamed), and
//! only ever by this code: whoever can write the cache directory can run native code in the host,
//! which is why nothing uploaded ever lands there.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gristmill_core::Digest;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::LoadError;

pub(crate) struct ArtifactCache {
    directory: PathBuf,
}

impl ArtifactCache {
    /// The cache for this engine's code under `root`.
    pub(crate) fn open(root: &Path, engine: &Engine) -> io::Result<Self> {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let directory = root.join(format!("{:016x}", hasher.finish()));
        fs::create_dir_all(&directory)?;
        Ok(Self { directory })
    }

    /// The component's code: from the cache, else compiled and cached.
    pub(crate) fn load(
        &self,
        engine: &Engine,
        digest: Digest,
        component: &[u8],
    ) -> Result<Component, LoadError> {
        let path = self.directory.join(format!("{}.cwasm", digest.hex()));
        if path.exists() {
            match deserialize(engine, &path) {
                Ok(component) => return Ok(component),
                // Another build's leftovers, or a damaged disk: compile anew.
                Err(error) => {
                    tracing::warn!(%digest, %error, "compiled code unusable, compiling anew")
                }
            }
        }
        let code = engine
            .precompile_component(component)
            .map_err(|error| LoadError::Compile(format!("{error:#}")))?;
        self.write(&path, &code)?;
        deserialize(engine, &path).map_err(|error| LoadError::Compile(format!("{error:#}")))
    }

    fn write(&self, path: &Path, code: &[u8]) -> io::Result<()> {
        let aside = path.with_extension(format!("{}.tmp", std::process::id()));
        let mut file = fs::File::create(&aside)?;
        file.write_all(code)?;
        file.sync_all()?;
        fs::rename(&aside, path)
    }
}

#[allow(unsafe_code)]
fn deserialize(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the file was written by `ArtifactCache::write` from the output of
    // `precompile_component`, in a directory that only this host writes to.
    unsafe { Component::deserialize_file(engine, path) }
}
