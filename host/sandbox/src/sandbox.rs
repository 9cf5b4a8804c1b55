//! From an uploaded file to a plugin that can be called.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use gristmill_core::{BufferPool, Digest, ErrorCode};
use gristmill_metrics::Durations;
use gristmill_platform::child::JobStatus;

use crate::artifact::{ArtifactCache, Cached};
use crate::check_component::check_head;
use crate::compile::{CompileRequest, Compiler};
use crate::config::SandboxConfig;
use crate::engine::{Instances, PluginEngine};
use crate::error::LoadError;
use crate::plugin::{Compiled, Plugin};

/// Loads plugins, and keeps their compiled code.
pub struct Sandbox {
    engine: Arc<PluginEngine>,
    cache: ArtifactCache,
    compiles: Durations,
}

/// The answer of the cache.
enum Lookup {
    Found(Result<Plugin, LoadError>),
    /// The file for the compiler's answer.
    Missing(tempfile::NamedTempFile),
}

impl Sandbox {
    /// An engine with its pool, and its cache of compiled code.
    ///
    /// # Errors
    /// [`LoadError::Compile`] if wasmtime refuses the configuration, [`LoadError::Cache`] if the
    /// cache's directory cannot be used.
    pub fn new(config: &SandboxConfig, pool: BufferPool) -> Result<Arc<Self>, LoadError> {
        let engine = PluginEngine::new(config, pool)?;
        let cache = ArtifactCache::open(&config.cache_directory, engine.engine())?;
        Ok(Arc::new(Self { engine, cache, compiles: Durations::default() }))
    }

    /// Load an uploaded file. Its code comes from the cache if it is there; if not, the file is
    /// checked and compiled. Then the code is checked against the contract.
    ///
    /// # Errors
    /// [`LoadError::code`] tells a faulty file from a fault of this host.
    pub async fn load(self: &Arc<Self>, digest: Digest, file: Bytes) -> Result<Plugin, LoadError> {
        let loaded = self.cached_or_compiled(digest, file).await;
        if let Err(error) = &loaded
            && error.code() == ErrorCode::Internal
        {
            tracing::error!(%digest, error = error.in_full(), "a plugin cannot be compiled");
        }
        loaded
    }

    async fn cached_or_compiled(
        self: &Arc<Self>,
        digest: Digest,
        file: Bytes,
    ) -> Result<Plugin, LoadError> {
        check_head(&file)?;
        let (engine, bounds) = (self.cache.engine().to_owned(), self.config().bounds());
        let request = Arc::new(CompileRequest { digest, engine, bounds });
        let (sandbox, wanted) = (self.clone(), request.clone());
        let lookup = blocking(move || match sandbox.cache.get(sandbox.engine.engine(), &wanted) {
            Some(cached) => Ok(Lookup::Found(sandbox.plugin(cached))),
            None => Ok(Lookup::Missing(sandbox.cache.temporary()?)),
        });
        let temporary = match lookup.await? {
            Lookup::Found(plugin) => return plugin,
            Lookup::Missing(temporary) => temporary,
        };
        let answer = temporary.as_file().try_clone()?;
        let began = Instant::now();
        let compiled =
            self.config().compiler.run(CompileRequest::clone(&request), file, answer).await;
        self.compiles.add(began.elapsed());
        compiled?;
        let sandbox = self.clone();
        blocking(move || {
            let cached = sandbox.cache.keep(sandbox.engine.engine(), &request, temporary)?;
            sandbox.plugin(cached)
        })
        .await
    }

    fn plugin(&self, cached: Cached) -> Result<Plugin, LoadError> {
        let Cached { component, about } = cached;
        let (roles, sources, imports) = (about.roles(), about.sources, about.imports);
        Plugin::load(self.engine.clone(), Compiled { component, roles, imports, sources })
    }

    /// The bytes of the compiled code that these plugins have on disk, loaded or not.
    ///
    /// # Errors
    /// [`LoadError::Cache`] if the host is about to end.
    pub async fn compiled_bytes(
        self: &Arc<Self>,
        digests: HashSet<Digest>,
    ) -> Result<u64, LoadError> {
        let sandbox = self.clone();
        let bytes = move |digest| sandbox.cache.bytes_of(digest);
        blocking(move || Ok(digests.into_iter().map(bytes).sum())).await
    }

    /// Remove the compiled code of these plugins from the disk. Those that are loaded keep theirs.
    ///
    /// # Errors
    /// [`LoadError::Cache`] if the host is about to end.
    pub async fn remove_compiled(
        self: &Arc<Self>,
        digests: HashSet<Digest>,
    ) -> Result<(), LoadError> {
        let sandbox = self.clone();
        let remove = move |digest| sandbox.cache.remove(digest);
        blocking(move || {
            digests.into_iter().for_each(remove);
            Ok(())
        })
        .await
    }

    /// Remove the compiled code of all plugins for which `is_needed` is false from the disk.
    /// Plugins that are loaded keep theirs.
    ///
    /// # Errors
    /// [`LoadError::Cache`] if the cache's directory cannot be read.
    pub async fn retain_compiled(
        self: &Arc<Self>,
        is_needed: impl Fn(Digest) -> bool + Send + 'static,
    ) -> Result<(), LoadError> {
        let sandbox = self.clone();
        blocking(move || Ok(sandbox.cache.retain(is_needed)?)).await
    }

    /// The plugins that are being compiled or wait for it.
    pub fn jobs(&self) -> Vec<JobStatus> {
        match &self.config().compiler {
            Compiler::Child { runner, .. } => runner.status(),
            Compiler::InProcess => Vec::new(),
        }
    }

    /// How long it took to compile and check each plugin that was not compiled before, failures
    /// included.
    pub fn compiles(&self) -> &Durations {
        &self.compiles
    }

    /// The instances of plugins now.
    pub fn instances(&self) -> Instances {
        self.engine.instances()
    }

    /// The bytes that the memories of instances that ended keep for later ones.
    pub fn retained_bytes(&self) -> usize {
        self.engine.retained_bytes()
    }

    /// The size of the pool.
    pub fn config(&self) -> &SandboxConfig {
        self.engine.config()
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LoadError> + Send + 'static,
) -> Result<T, LoadError> {
    tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other)?
}
