//! `gristmill serve`: wire everything together, serve, drain.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Command};
use gristmill_backend::{Backends, LibrarySearch};
use gristmill_child::{ChildLimits, ChildRunner, RunnerConfig};
use gristmill_control::{Control, ControlParts, ProverConfig};
use gristmill_core::{BufferPool, PipelineLimits};
use gristmill_http::{
    AdminPlane, Connections, DataPlane, Inference, InferenceConfig, ListenerConfig, Protocol,
    Shutdown, UploadLimits, grpc_plane, serve,
};
use gristmill_sandbox::{Compiler, Sandbox, SandboxConfig};
use gristmill_store::Store;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{self, Config};
use crate::data_dir;
use crate::process;
use crate::token::admin_token;

/// A run that is told to end ends with the operator that it is in.
const RUNS_END_WITHIN: Duration = Duration::from_secs(3);

/// Unused tensor buffers kept for the next request, in bytes.
const RETAINED_BYTES_MAX: usize = 256 << 20;

/// Open files that are not for connections: listeners, the log, blobs, models and plugins.
const OWN_FILES: usize = 64;

/// Connections that the admin plane has places for, whatever the data plane's clients do, and of
/// how many open files they are one.
const ADMIN_CONNECTIONS_MIN: usize = 64;
const ADMIN_CONNECTIONS_MAX: usize = 1024;
const FILES_PER_ADMIN_CONNECTION: usize = 8;

/// What the data plane has places for, however few files may be open.
const CONNECTIONS_MIN: usize = 16;
/// The most machine code of one plugin; an interpreter in WebAssembly has a tenth of it.
const CODE_BYTES_MAX: u64 = 512 << 20;

/// How many seconds by the clock a child has for each of processor time: it has the lowest priority,
/// and others may keep the processors busy.
const WALL_PER_CPU: u32 = 10;

pub(crate) fn command() -> Command {
    Command::new("serve").about("Serve tenants and the admin API").args(config::args()).after_help(
        "Each setting can also be given in the configuration file, by the name of its flag with \
         underscores. SIGTERM and SIGINT drain: no new connections, requests under way finish.\n\n\
         Examples:\n  \
         gristmill serve\n  \
         gristmill serve --config /etc/gristmill.toml --listen 0.0.0.0:8080\n  \
         GRISTMILL_LOG_FORMAT=json gristmill serve --onnxruntime-library /opt/onnxruntime.so",
    )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let config = match Config::resolve(matches) {
        Ok(config) => config,
        Err(faults) => bail!("the configuration is wrong:\n  {}", faults.join("\n  ")),
    };
    gristmill_telemetry::init(&config.log, config.log_format)?;
    for variable in config::unknown_variables(std::env::vars_os().map(|(name, _)| name)) {
        tracing::warn!(
            variable,
            "unknown variable; `gristmill serve --help` lists those there are"
        );
    }
    // A connection is a file, and the usual limit of 1024 of them is for programs that hold few.
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(%error, "the limit on open files stays as it is");
    }
    let (files, _) = rlimit::Resource::NOFILE.get()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run_server(config, files.try_into().unwrap_or(usize::MAX)))
}

async fn run_server(config: Config, files: usize) -> Result<()> {
    // In this order: where a start fails for its addresses or its directory, nothing was made; and a
    // token that was made has been shown before anything else can fail.
    let listener = bind("listen", config.listen).await?;
    let grpc_listener = bind("grpc_listen", config.grpc_listen).await?;
    let admin_listener = bind("admin_listen", config.admin_listen).await?;
    let _held = data_dir::hold(&config.data_dir)?;
    let token = admin_token(config.admin_token.as_deref(), &config.data_dir)?;
    let pool = BufferPool::new(RETAINED_BYTES_MAX);
    let children = Children::new(&config);
    let control = Arc::new(open_control(&config, pool.clone(), &children).await?);

    let (shutdown, running) = (Shutdown::new(), control.clone());
    let limits = ListenerConfig {
        header_read_timeout: config.header_timeout,
        write_timeout: config.write_timeout,
        drain_timeout: config.drain_timeout,
        ..ListenerConfig::default()
    };
    let (limits, admin_limits) = with_places(limits, &config, files);
    let rules = InferenceConfig {
        open_tenant: config.open_tenant,
        admin_token: token,
        message_bytes_max: config.message_bytes_max,
        timeout: config.infer_timeout,
    };
    let inference = Inference::new(control.clone(), shutdown.clone(), pool, rules);
    let cell = control.cell().clone();
    let data = DataPlane::new(cell.clone(), inference.clone(), shutdown.clone());
    let mut grpc = grpc_plane(inference).await;
    let uploads = UploadLimits {
        upload_bytes_max: config.upload_bytes_max,
        upload_timeout: config.upload_timeout,
    };
    let admin = AdminPlane::new(control, token, uploads);
    announce([&listener, &grpc_listener, &admin_listener])?;

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let calls = grpc.clone();
    let stop = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("shutting down: finishing requests under way");
        children.compilers.stop();
        children.provers.stop();
        grpc.shut_down().await;
        shutdown.begin();
    };
    let (http1, http2) = (Protocol::Http1, Protocol::Http2);
    let serve_data = serve(listener, http1, limits.clone(), shutdown.clone(), move |request| {
        data.clone().handle(request)
    });
    let serve_grpc = serve(grpc_listener, http2, limits.clone(), shutdown.clone(), move |call| {
        calls.clone().handle(call)
    });
    let serve_admin =
        serve(admin_listener, http1, admin_limits, shutdown.clone(), move |request| {
            admin.clone().handle(request)
        });
    let (data, grpc, admin, ()) = tokio::join!(serve_data, serve_grpc, serve_admin, stop);
    if !(data && grpc && admin) {
        tracing::warn!("some requests were still under way when the drain timeout passed");
    }
    if !running.end_runs(RUNS_END_WITHIN) {
        tracing::warn!("a model still runs, although it was told to end");
        process::end_at_once();
    }
    Ok(())
}

/// The listeners' limits with places for connections, of which at most `files` may be open: those
/// of the data plane and gRPC, and those of the admin plane.
fn with_places(
    limits: ListenerConfig,
    config: &Config,
    files: usize,
) -> (ListenerConfig, ListenerConfig) {
    let admin = files / FILES_PER_ADMIN_CONNECTION;
    let admin = admin.clamp(ADMIN_CONNECTIONS_MIN, ADMIN_CONNECTIONS_MAX);
    let data = files.saturating_sub(OWN_FILES + admin).max(CONNECTIONS_MIN);
    let data = config.connections_max.unwrap_or(data);
    let connections = Connections::new(data, config.connections_per_client_max);
    let admin_limits =
        ListenerConfig { connections: Connections::new(admin, None), ..limits.clone() };
    (ListenerConfig { connections, ..limits }, admin_limits)
}

/// What may take any time and any memory is done by children of this process.
struct Children {
    compilers: Arc<ChildRunner>,
    /// Load models for the first time, one at a time. Not behind plugins, which may take minutes.
    provers: Arc<ChildRunner>,
}

impl Children {
    fn new(config: &Config) -> Self {
        let runner = |concurrent| {
            // The allocator reserves a gigabyte at its start; as memory that it can write to, this
            // would be beyond the limit that a child is given later.
            let mut environment = vec![("MIMALLOC_ARENA_EAGER_COMMIT".into(), "0".into())];
            let libraries = "LD_LIBRARY_PATH";
            environment.extend(std::env::var_os(libraries).map(|path| (libraries.into(), path)));
            ChildRunner::new(RunnerConfig {
                concurrent,
                environment,
                ..RunnerConfig::new(&["child"])
            })
        };
        Self { compilers: runner(config.compile_concurrency), provers: runner(1) }
    }
}

async fn open_control(config: &Config, pool: BufferPool, children: &Children) -> Result<Control> {
    let data_dir = &config.data_dir;
    let search = LibrarySearch {
        configured: config.onnxruntime_library.clone(),
        data_directory: Some(data_dir.clone()),
    };
    let backends = Backends::open(&search, pool.clone())?;
    let limits = ChildLimits {
        wall: config.compile_timeout * WALL_PER_CPU,
        cpu: config.compile_timeout,
        memory_bytes: config.compile_memory_bytes,
        address_bytes: None,
        output_bytes: CODE_BYTES_MAX,
    };
    let sandbox = SandboxConfig {
        concurrent_calls: config.concurrent_plugin_calls,
        memory_bytes_max: config.plugin_memory_bytes,
        instances_max: config.plugin_instances,
        compiler: Compiler::Child { runner: children.compilers.clone(), limits },
        ..SandboxConfig::new(data_dir.join("compiled"))
    };
    let sandbox = Sandbox::new(&sandbox, pool).context("cannot set up the sandbox")?;
    let mut limits = PipelineLimits::default();
    limits.plugin.memory_bytes = config.plugin_memory_bytes;
    limits.plugin.instances = config.plugin_instances as usize;
    let store = Store::open_local(&data_dir.join("store"))?;
    let tenant_bytes_max = config.tenant_bytes_max;
    let prover = ProverConfig {
        runner: children.provers.clone(),
        directory: data_dir.join("proofs"),
        timeout: config.model_proof_timeout,
        memory_bytes: config.model_proof_memory_bytes,
    };
    let store = store.into();
    let parts = ControlParts { store, sandbox, backends, limits, tenant_bytes_max, prover };
    Ok(Control::open(parts).await?)
}

async fn bind(setting: &str, address: std::net::SocketAddr) -> Result<TcpListener> {
    let flag = setting.replace('_', "-");
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {setting} {address}: choose another address with --{flag}")
    })
}

/// Say where the server is: on standard output, for people and scripts that started it.
fn announce(listeners: [&TcpListener; 3]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "gristmill {}", env!("CARGO_PKG_VERSION"))?;
    for (name, listener) in ["data plane ", "grpc       ", "admin plane"].iter().zip(listeners) {
        writeln!(out, "{name} http://{}", listener.local_addr()?)?;
    }
    out.flush()?;
    Ok(())
}
