//! `gristmill serve`: bind, load, serve, drain.
//!
//! The listeners answer as soon as they are bound. Until the state is loaded, they answer that the
//! server is loading. A signal makes the server not ready. After a delay it drains, and ends within
//! the drain timeout.

mod idle_memory;
mod limits;
mod listeners;
mod observing;
mod opening;
mod pushing;
mod repository;
mod samples;
mod stop;
mod store;
mod tls;
mod usage;

use std::convert::Infallible;
use std::io::Write;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Result;
use clap::{ArgMatches, Command};
use gristmill_admin::observe::{Observed, Observer, Scrapes};
use gristmill_admin::{AdminKeys, AdminParts, AdminPlane, MetricsPlane, UploadLimits};
use gristmill_client::Addresses;
use gristmill_control::{Control, FigureParts, Progress};
use gristmill_core::BufferPool;
use gristmill_http::{DataPlane, Inference, InferenceConfig, Loading, grpc_plane};
use gristmill_imaging::is_decoding;
use gristmill_log::{Log, LogFormat};
use gristmill_metrics::LabelSlots;
use gristmill_platform::Share;
use gristmill_snapshot::Cors;
use gristmill_text::is_tokenizing;
use gristmill_transport::Shutdown;
use gristmill_transport::credentials::KeyHasher;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use self::limits::limits;
use self::listeners::{Listeners, Planes};
use self::opening::{Children, OpeningParts, open_control};
use self::repository::Repository;
use self::samples::DataPlaneSamples;
use self::stop::{Signals, end, end_within};
use self::tls::PlanesTls;
use crate::config::{self, Config};
use crate::process;
use crate::token::{NewToken, root_token};
use crate::{data_dir, hash_key};

/// The fewest threads of the control plane: while one of them reads a large document, another one
/// renews the server's lease.
const CONTROL_THREADS_MIN: usize = 2;

/// The interval at which a long start logs its progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(3);

/// The modules that log about the server itself, its state, and calls with the admin token. Clients
/// without the token cannot make them write many lines.
const OWN_LINES: [&str; 9] = [
    "gristmill",
    "gristmill_platform::child",
    "gristmill_control",
    "gristmill_admin",
    "gristmill_http::inference::repository",
    "gristmill_store",
    "gristmill_log::queue",
    "gristmill_transport::tls::current",
    "gristmill_transport::tls::watch",
];

pub(crate) fn command() -> Command {
    Command::new("serve").about("Serve tenants and the admin API").args(config::args()).after_help(
        "Each setting can also be given in the configuration file, by the name of its flag with \
         underscores. SIGTERM or SIGINT makes the server not ready. After shutdown_delay_s, or a \
         second signal, it drains: it accepts no new connections and finishes the requests under \
         way. One more signal ends the server at once.\n\n\
         Examples:\n  \
         gristmill serve\n  \
         gristmill serve --config /etc/gristmill.toml --listen 0.0.0.0:8080\n  \
         gristmill serve --tls-certificate server.crt --tls-key server.key\n  \
         GRISTMILL_LOG_FORMAT=json gristmill serve --onnxruntime-library /opt/onnxruntime.so",
    )
}

/// What a command that serves does in its own way.
pub(crate) struct Style {
    /// What is done with a root token that is made.
    pub(crate) token: NewToken,
    /// Says on standard output that the server serves, and where.
    pub(crate) announce: fn(&Config, &Addresses) -> Result<()>,
}

/// What a server starts with.
struct Start {
    config: Arc<Config>,
    style: Style,
    tls: PlanesTls,
    /// The limit on open files.
    files: usize,
    log: Log,
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    serve(Config::resolve(matches, &[])?, Style { token: NewToken::Shown, announce })
}

/// Serve until the process ends. Returns only if that fails.
pub(crate) fn serve(config: Config, style: Style) -> Result<()> {
    let format = config.logging.log_format;
    let as_json = format == LogFormat::Json;
    let is_of_input = || is_decoding() || is_tokenizing();
    let log = gristmill_log::init(&config.logging.log.0, format, &OWN_LINES, is_of_input)?;
    let Err(error) = start(config, style, &log);
    // In JSON the error is logged here, because the caller would write text.
    let is_logged = as_json && tracing::enabled!(tracing::Level::ERROR);
    if is_logged {
        tracing::error!("{error:#}");
    }
    log.flush();
    if is_logged { process::end(1) } else { Err(error) }
}

/// The same, with a log.
fn start(config: Config, style: Style, log: &Log) -> Result<Infallible> {
    for variable in config::unknown_variables(std::env::vars_os().map(|(name, _)| name)) {
        tracing::warn!(variable, "unknown variable; `gristmill serve --help` lists the known ones");
    }
    // Set before other threads are started, because they inherit it.
    Share::Serving.take("requests");
    // A connection is an open file, and the usual limit of 1024 is too low for a server.
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(%error, "cannot raise the limit on open files");
    }
    let (files, _) = rlimit::Resource::NOFILE.get()?;
    let tls = PlanesTls::open(&config.tls)?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let control = control_runtime()?;
    let files = files.try_into().unwrap_or(usize::MAX);
    let start = Start { config: Arc::new(config), style, tls, files, log: log.clone() };
    let serving = run_server(start, control.handle().clone());
    let ended = runtime.block_on(serving);
    // Work that still runs ends with the process.
    std::mem::forget((runtime, control));
    ended
}

/// The threads of the control plane and its API, those for its blocking work among them. Threads
/// that serve go before them, so that no request waits for an upload, a release or the load of a
/// model. They have the same priority all the same: a request may wait for a lock that they hold.
fn control_runtime() -> std::io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread()
        .worker_threads(cores.max(CONTROL_THREADS_MIN))
        .thread_name("control")
        .on_thread_start(|| Share::Ordinary.take("releases"))
        .enable_all()
        .build()
}

/// Serve until a signal, drain, and end the process. The calling runtime serves the data plane.
async fn run_server(start: Start, control_threads: Handle) -> Result<Infallible> {
    let Start { config, style, tls, files, log } = start;
    // The order matters: no token is made before the addresses and the directory can be used, and a
    // new token is shown before anything else can fail.
    let listeners = Listeners::bind(&config, tls.clone(), control_threads.clone()).await?;
    // The directory is held until the process has ended, because remaining work may still write.
    std::mem::forget(data_dir::lock(&config.data.data_dir)?);
    let as_json = config.logging.log_format == LogFormat::Json;
    let admin_token = config.access.admin_token.as_ref().map(|token| token.0.as_str());
    let token = root_token(admin_token, &config.data.data_dir, style.token, as_json)?;
    let hasher = hash_key::read(&config.data)?;
    let addresses = listeners.addresses()?;
    let Addresses { data, grpc, metrics, admin } = &addresses;
    tracing::info!(data, grpc, metrics, admin, "listening, loading the state");

    let (shutdown, progress) = (Shutdown::new(), Progress::default());
    let planes = Arc::new(OnceLock::new());
    let shown_progress = progress.clone();
    let cors = Cors::of(config.access.cors_origins.clone().unwrap_or_default());
    let children = Arc::new(Children::new(&config));
    let compiling = children.clone();
    let shown = move || format!("{shown_progress}{}", compiling.shown());
    let loading = Loading::new(shown, cors.clone());
    let mut signals = Signals::new()?;
    let limits = limits(&config, files);
    let connections =
        [("data", limits.data.connections.clone()), ("admin", limits.admin.connections.clone())];
    let mut serving = listeners.serve(limits, planes.clone(), loading, shutdown.clone());
    let (buffers, _) = idle_memory::shares(config.requests.retained_memory_bytes);
    let pool = BufferPool::new(buffers);
    let usage_store = usage::open(&config)?;
    let observing = observing::observer(&config, &addresses.data, &control_threads).await?;
    let hash_key = hasher.as_ref().map(KeyHasher::id);
    let parts = OpeningParts {
        address: addresses.admin.clone(),
        pool: pool.clone(),
        progress: progress.clone(),
        children: children.clone(),
        figures: FigureParts {
            label_slots: LabelSlots::new(config.metrics.metrics_pipelines_max).into(),
            usage: usage_store.clone(),
        },
        hash_key,
        data_plane: Handle::current(),
    };
    let opening = open_control(config.clone(), parts);
    let opening = control_threads.spawn(opening);
    let opened = tokio::select! {
        opened = watched(opening, &progress) => opened.map(Some),
        () = signals.next() => Ok(None),
    };
    let control = match opened {
        Ok(Some(control)) => Arc::new(control),
        ended => {
            end_within(config.shutdown.drain_timeout, signals, log.clone());
            children.stop();
            shutdown.begin();
            serving.join_all().await;
            ended?;
            end(&log);
        }
    };
    // Only a store without keyed hashes is opened without the key.
    let hasher = match hasher {
        Some(hasher) => hasher,
        None => hash_key::make(&config.data.data_dir)?,
    };
    let root = token.hash(&hasher);
    let rules = InferenceConfig {
        open_tenant: config.access.open_tenant.clone(),
        admin_token: root,
        hasher: hasher.clone(),
        message_bytes_max: config.requests.message_bytes_max,
        timeout: config.requests.infer_timeout,
        observer: observing.clone(),
    };
    let leaving = control.clone();
    let repository = Repository { control: control.clone(), threads: control_threads.clone() };
    let inference = Inference::new(
        control.cell().clone(),
        Arc::new(repository),
        shutdown.clone(),
        pool.clone(),
        rules,
    );
    let data = DataPlane::new(control.cell().clone(), inference.clone(), cors);
    let mut grpc = grpc_plane(inference).await;
    let uploads = UploadLimits {
        upload_bytes_max: config.uploads.upload_bytes_max,
        upload_timeout: config.uploads.upload_timeout,
    };
    let tls = [("data", tls.data), ("admin", tls.admin)];
    let tls = tls.into_iter().filter_map(|(plane, tls)| Some((plane, tls?))).collect();
    let keys = AdminKeys { root, hasher };
    let observer = Observer::new(Observed {
        control: control.clone(),
        edges: observing.edges,
        requests: observing.requests,
        heap: process::heap,
        pool: pool.clone(),
        connections,
        log: log.clone(),
        tenant_bytes_max: config.requests.tenant_bytes_max,
        version: env!("CARGO_PKG_VERSION"),
    });
    let observer = Arc::new(observer);
    pushing::start(&config, &addresses.data, observer.clone(), &control_threads).await?;
    let scrapes = Scrapes::new(observer);
    let metrics = MetricsPlane::new(scrapes.clone());
    let trials = Arc::new(DataPlaneSamples { data_plane: Handle::current() });
    let admin = AdminPlane::new(AdminParts {
        control,
        keys,
        limits: uploads,
        log: log.clone(),
        scrapes,
        trials,
        tls,
        shutdown: shutdown.clone(),
    })?;
    let _ = planes.set(Planes { data, grpc: grpc.clone(), admin, metrics });
    let keeping = control_threads.spawn(usage::keep(usage_store.clone()));
    let freeing_memory = control_threads.spawn(idle_memory::free_unused(pool));
    (style.announce)(&config, &addresses)?;

    signals.next().await;
    leaving.leave().await;
    stop::announce(&mut signals, &shutdown, &mut grpc, config.shutdown.shutdown_delay).await;
    children.stop();
    end_within(config.shutdown.drain_timeout, signals, log.clone());
    grpc.shut_down().await;
    shutdown.begin();
    let mut all_finished = true;
    while let Some(finished) = serving.join_next().await {
        all_finished &= finished?;
    }
    keeping.abort();
    freeing_memory.abort();
    usage::keep_once(&usage_store);
    leaving.stores().flush().await;
    observing::end(&observing).await;
    if !all_finished {
        tracing::warn!("some requests were still under way when the drain timeout passed");
    }
    end(&log)
}

/// Wait for `opening`, and log its progress now and then.
async fn watched(mut opening: JoinHandle<Result<Control>>, progress: &Progress) -> Result<Control> {
    loop {
        tokio::select! {
            opened = &mut opening => return opened?,
            () = tokio::time::sleep(PROGRESS_INTERVAL) => tracing::info!("loading: {progress}"),
        }
    }
}

/// Print the server's addresses on standard output, for the people and scripts that started it.
pub(crate) fn announce(config: &Config, addresses: &Addresses) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let version = env!("CARGO_PKG_VERSION");
    let text = match config.logging.log_format {
        LogFormat::Json => addresses.to_json(version),
        LogFormat::Text => addresses.to_text(version),
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
