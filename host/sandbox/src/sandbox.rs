//! From an uploaded file to a plugin that can be called.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use gristmill_core::{BufferPool, Digest, ErrorCode};
use gristmill_metrics::Durations;
use gristmill_platform::child::JobStatus;

use crate::artifact::{ArtifactCache, Cached};
use crate::check_component::check_head;
use crate::compile::{CompileRequest, Compiler, Kind};
use crate::config::SandboxConfig;
use crate::engine::{Instances, PluginEngine};
use crate::load_error::LoadError;
use crate::mapped::exported_code;
use crate::plugin::Plugin;
use crate::runtime::{
    self, InstalledRuntime, InstalledRuntimes, LinkedRuntime, RuntimeStatus, is_archive,
    read_runtime,
};

/// Loads plugins, and keeps their compiled code.
pub struct Sandbox {
    engine: Arc<PluginEngine>,
    cache: ArtifactCache,
    /// The cache of the runtimes' code, if it is another one.
    runtimes_cache: Option<ArtifactCache>,
    runtimes: InstalledRuntimes,
    compiles: Durations,
}

/// The answer of the cache.
enum Lookup {
    Found(Box<Cached>),
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
        let open = |directory: &PathBuf| ArtifactCache::open(directory, engine.engine());
        let cache = open(&config.cache_directory)?;
        let runtimes_cache = config.runtimes_cache.as_ref().map(open).transpose()?;
        let runtimes = InstalledRuntimes::in_folder(config.runtimes_directory.as_deref())?;
        let compiles = Durations::default();
        Ok(Arc::new(Self { engine, cache, runtimes_cache, runtimes, compiles }))
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
        let is_archive = is_archive(&file);
        let kind = self.kind(is_archive).await?;
        let uploaded = file.clone();
        let cached = match self.compiled(digest, file.clone(), kind).await {
            Err(LoadError::NeedsRuntime(language)) => {
                let runtime = self.runtimes.of(language)?;
                self.linked(runtime.ok_or(LoadError::NoRuntime(language))?).await?;
                let kind = self.kind(is_archive).await?;
                self.compiled(digest, file, kind).await?
            }
            cached => cached?,
        };
        let runtime = match cached.about.runtime {
            Some(digest) => self.runtimes.with_digest(digest)?,
            None => None,
        };
        let runtime = match runtime {
            Some(runtime) => Some(self.linked(runtime).await?),
            None => None,
        };
        let sandbox = self.clone();
        blocking(move || Plugin::load(sandbox.engine.clone(), cached, runtime, &uploaded)).await
    }

    /// Load the code of all runtimes, and compile what is not cached, so that no upload waits for
    /// it.
    ///
    /// # Errors
    /// The last fault, as of [`load`](Self::load). An upload that needs the runtime tries again.
    pub async fn prepare_runtimes(self: &Arc<Self>) -> Result<(), LoadError> {
        let sandbox = self.clone();
        // The first time reads their files.
        blocking(move || Ok(sandbox.runtimes.all().map(drop)?)).await?;
        let mut outcome = Ok(());
        for runtime in self.runtimes.all()? {
            if let Err(error) = self.linked(runtime).await {
                outcome = Err(error);
            }
        }
        outcome
    }

    /// How an uploaded file is compiled. Only an archive of sources needs the runtimes.
    async fn kind(self: &Arc<Self>, is_archive: bool) -> Result<Kind, LoadError> {
        if !is_archive {
            return Ok(Kind::Plugin(Vec::new()));
        }
        let sandbox = self.clone();
        blocking(move || Ok(Kind::Plugin(sandbox.runtimes.compiled()?))).await
    }

    /// The code of a runtime, which is compiled if it is not cached.
    async fn linked(
        self: &Arc<Self>,
        runtime: &InstalledRuntime,
    ) -> Result<Arc<LinkedRuntime>, LoadError> {
        let language = runtime.language;
        let load = async {
            let (path, digest) = (runtime.file.clone(), runtime.digest);
            let file = blocking(move || Ok(Bytes::from(read_runtime(&path, digest)?))).await?;
            let cached = self.compiled(runtime.code_digest(), file, Kind::Runtime).await?;
            let path = self.cache_of(&Kind::Runtime).path(runtime.code_digest());
            let code = cached.component;
            let mut linker = self.engine.linker().clone();
            exported_code(self.engine.engine(), &code)
                .and_then(|module| runtime::link(&mut linker, &module))
                .map_err(LoadError::Compile)?;
            Ok(LinkedRuntime { version: runtime.version(), linker, code, path })
        };
        let unusable = |error| LoadError::RuntimeUnusable { language, error: Box::new(error) };
        runtime.linked(load).await.map_err(unusable)
    }

    /// Where compiled code of this kind is kept.
    fn cache_of(&self, kind: &Kind) -> &ArtifactCache {
        match (kind, &self.runtimes_cache) {
            (Kind::Runtime, Some(cache)) => cache,
            _ => &self.cache,
        }
    }

    /// The compiled code from the cache, or from a child that compiles it now.
    async fn compiled(
        self: &Arc<Self>,
        digest: Digest,
        file: Bytes,
        kind: Kind,
    ) -> Result<Cached, LoadError> {
        let (engine, bounds) = (self.cache.engine().to_owned(), self.config().bounds());
        let request = Arc::new(CompileRequest { digest, engine, bounds, kind });
        let (sandbox, wanted) = (self.clone(), request.clone());
        let lookup = blocking(move || {
            let cache = sandbox.cache_of(&wanted.kind);
            Ok(match cache.get(sandbox.engine.engine(), &wanted) {
                Some(cached) => Lookup::Found(Box::new(cached)),
                None => Lookup::Missing(cache.temporary()?),
            })
        });
        let temporary = match lookup.await? {
            Lookup::Found(cached) => return Ok(*cached),
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
            let cache = sandbox.cache_of(&request.kind);
            cache.keep(sandbox.engine.engine(), &request, temporary)
        })
        .await
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
        let is_needed =
            move |digest| is_needed(digest) || sandbox.runtimes.has_code(digest).unwrap_or(true);
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

    /// The runtimes of languages, once their files were read.
    pub fn runtimes(&self) -> Vec<RuntimeStatus> {
        self.runtimes.statuses()
    }

    /// The plugins whose sources were loaded into a runtime that this server had before, and which
    /// it therefore loads again.
    pub fn reloaded_plugins(&self) -> u64 {
        self.cache.of_other_runtimes()
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
