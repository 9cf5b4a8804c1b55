//! Loading a plugin as a server does, in a sandbox of its own.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use gristmill_client::block_on;
use gristmill_core::{BufferPool, Digest};
use gristmill_sandbox::{LoadError, Roles, Sandbox, SandboxConfig, is_archive};

use super::build_folder::BuildFolder;
use super::children;
use crate::folders;
use crate::own_server::RUNTIMES;

/// What loading a plugin showed.
pub(super) struct Loaded {
    /// What it exports.
    pub(super) roles: Roles,
    /// The time that it took on one core.
    pub(super) time: Duration,
    /// The largest linear memory that an instance begins with.
    pub(super) initial_memory_bytes: u64,
}

/// Load a component, or an archive of sources.
///
/// # Errors
/// [`LoadError`] says why it is refused, or that it needs a runtime that this program does not
/// have.
pub(super) fn load(file: &[u8]) -> Result<Loaded> {
    let cache = tempfile::tempdir()?;
    let cache_directory = cache.path().to_owned();
    let usual = match is_archive(file) {
        true => config(cache_directory)?,
        false => SandboxConfig::new(cache_directory),
    };
    let config = SandboxConfig { concurrent_calls: 1, compiler: children::compiler(), ..usual };
    let sandbox = Sandbox::new(&config, BufferPool::new(0))?;
    let started = Instant::now();
    let loading = async {
        let loaded = sandbox.load(Digest::of(file), Bytes::copy_from_slice(file)).await;
        Ok::<_, anyhow::Error>(loaded?)
    };
    let plugin = block_on(loading)?;
    let (time, initial_memory_bytes) = (started.elapsed(), plugin.initial_memory_bytes());
    Ok(Loaded { roles: plugin.roles(), time, initial_memory_bytes })
}

/// The defaults of a sandbox that keeps compiled plugins in `cache`, with the runtimes that a
/// server with the caller's environment has. The code of runtimes is kept in the folder of builds,
/// for all plugins.
pub(super) fn config(cache: PathBuf) -> Result<SandboxConfig> {
    let usual = SandboxConfig::new(cache);
    let named = folders::variable(RUNTIMES);
    let runtimes_directory = named.map(PathBuf::from).or(usual.runtimes_directory.clone());
    let runtimes_cache = Some(BuildFolder::open()?.runtimes());
    Ok(SandboxConfig { runtimes_directory, runtimes_cache, ..usual })
}

/// Whether a plugin was not loaded because this program has no runtime for it.
pub(super) fn is_without_runtime(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(LoadError::NoRuntime(_)))
}
