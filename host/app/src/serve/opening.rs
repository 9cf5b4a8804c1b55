//! Opening the control plane: the backends, the sandbox, the store, and the children.

use std::sync::Arc;

use anyhow::{Context, Result};
use gristmill_backend::{Backends, LibrarySearch};
use gristmill_cli::runner_config;
use gristmill_control::{AssetLimits, Control, ControlParts, FigureParts, Progress, ProverConfig};
use gristmill_core::{BufferPool, HashKeyId, PipelineLimits};
use gristmill_outbound::{Buckets, HttpClient};
use gristmill_platform::child::{ChildRunner, RunnerConfig};
use gristmill_sandbox::{Compiler, NoStores, Sandbox, SandboxConfig, Stores, child_limits};
use tokio::runtime::Handle;

use crate::config::Config;
use crate::serve::idle_memory;
use crate::serve::samples::DataPlaneSamples;
use crate::serve::store::open_store;

/// Runs work that may take any time and any memory in children of this process.
pub(super) struct Children {
    compilers: Arc<ChildRunner>,
    /// Loads models for the first time, one at a time. They have a separate queue, because
    /// compiling plugins may take minutes.
    provers: Arc<ChildRunner>,
}

impl Children {
    /// The end of a text about the start: how many plugins are being compiled, or loaded into a
    /// runtime that is another one than before, and how many runtimes are. Empty if there are none.
    pub(super) fn shown(&self) -> String {
        match self.compilers.status().len() {
            0 => String::new(),
            count => format!(", plugins and runtimes that are being compiled: {count}"),
        }
    }

    /// End all jobs, and accept no others.
    pub(super) fn stop(&self) {
        self.compilers.stop();
        self.provers.stop();
    }

    pub(super) fn new(config: &Config) -> Self {
        let concurrent = config.plugins.compile_concurrency;
        let compilers = RunnerConfig { concurrent, ..runner_config() };
        let mut provers = RunnerConfig { concurrent: 1, ..compilers.clone() };
        // A prover loads ONNX Runtime and the libraries that it is linked to.
        let libraries = "LD_LIBRARY_PATH";
        let path = std::env::var_os(libraries).map(|path| (libraries.into(), path));
        provers.environment.extend(path);
        Self { compilers: ChildRunner::new(compilers), provers: ChildRunner::new(provers) }
    }
}

/// Parts of the server from which the control plane is opened.
pub(super) struct OpeningParts {
    /// The address of its API, which other servers see.
    pub(super) address: String,
    /// The memory for tensors.
    pub(super) pool: BufferPool,
    pub(super) progress: Progress,
    pub(super) children: Arc<Children>,
    /// Where the figures and the usage of requests come from.
    pub(super) figures: FigureParts,
    /// Names the secret of hashes.
    pub(super) hash_key: Option<HashKeyId>,
    /// The threads that serve requests.
    pub(super) data_plane: Handle,
}

/// Load the code of the runtimes, so that no upload waits for it.
async fn prepare_runtimes(sandbox: Arc<Sandbox>) {
    if let Err(error) = sandbox.prepare_runtimes().await {
        tracing::error!(error = error.in_full(), "a runtime of a language cannot be loaded");
    }
}

/// Load the state.
///
/// # Errors
/// The control plane says why it cannot serve.
pub(super) async fn open_control(config: Arc<Config>, parts: OpeningParts) -> Result<Control> {
    let OpeningParts { address, pool, progress, children, figures, hash_key, data_plane } = parts;
    let data_dir = &config.data.data_dir;
    let search = LibrarySearch {
        configured: config.models.onnxruntime_library.clone(),
        data_directory: Some(data_dir.clone()),
    };
    let backends = Backends::open(&search, pool.clone(), config.models.model_run_memory_bytes)?;
    let plugins = &config.plugins;
    let limits = child_limits(plugins.compile_timeout, plugins.compile_memory_bytes);
    let usual = SandboxConfig::new(data_dir.join("compiled"));
    let sandbox = SandboxConfig {
        runtimes_directory: plugins.runtimes_directory.clone().or(usual.runtimes_directory.clone()),
        concurrent_calls: config.plugins.concurrent_plugin_calls,
        memory_bytes_max: config.plugins.plugin_memory_bytes,
        retained_bytes: idle_memory::shares(config.requests.retained_memory_bytes).1,
        instances_max: config.plugins.plugin_instances,
        compiler: Compiler::Child { runner: children.compilers.clone(), limits },
        ..usual
    };
    let sandbox = Sandbox::new(&sandbox, pool)
        .context("cannot set up the sandbox: `gristmill doctor` looks at the machine's limits")?;
    if plugins.prepare_runtimes {
        tokio::spawn(prepare_runtimes(sandbox.clone()));
    }
    let mut limits = PipelineLimits::default();
    limits.plugin.memory_bytes = config.plugins.plugin_memory_bytes;
    limits.plugin.host_memory_bytes = config.plugins.plugin_held_bytes;
    limits.plugin.instances = config.plugins.plugin_instances as usize;
    let (store, following) = open_store(&config, address)?;
    let tenant_bytes_max = config.requests.tenant_bytes_max;
    let prover = ProverConfig {
        runner: children.provers.clone(),
        directory: data_dir.join("proofs"),
        timeout: config.models.model_proof_timeout,
        memory_bytes: config.models.model_proof_memory_bytes,
    };
    let store = store.into();
    let stores: Arc<dyn Stores> = match config.stores.is_empty() {
        true => Arc::new(NoStores),
        false => Arc::new(Buckets::new(config.stores.clone(), &data_dir.join("stores"))?),
    };
    let outgoing = HttpClient::new().context("cannot start the thread of outgoing requests")?;
    let parts = ControlParts {
        store,
        sandbox,
        backends,
        limits,
        tenant_bytes_max,
        tenant_compiled_bytes_max: plugins.tenant_compiled_bytes_max,
        asset_limits: AssetLimits {
            bytes_max: plugins.asset_bytes_max,
            tenant_bytes_max: plugins.tenant_asset_bytes_max,
        },
        keep_releases: config.uploads.keep_releases,
        waiting_bytes_max: config.uploads.waiting_bytes_max,
        hash_key,
        prover,
        sample_runner: Arc::new(DataPlaneSamples { data_plane }),
        samples_timeout: config.uploads.samples_timeout,
        progress,
        figures,
        stores,
        outgoing: Arc::new(outgoing),
        following,
    };
    Ok(Control::open(parts).await?)
}
