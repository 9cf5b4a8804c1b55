//! The data plane and the admin plane of this process, over connections in memory: for tests that
//! need no plugin, no model and no process.
//!
//! They are the planes of the program, over a control plane whose store is a folder. All that the
//! program puts around them is missing: listeners, TLS, settings, the log, and children, without
//! which no plugin compiles and no model loads.

use std::convert::Infallible;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use gristmill_admin::observe::{Heap, Observed, Observer, Scrapes};
use gristmill_admin::{AdminKeys, AdminParts, AdminPlane, Trial, Trials, Tried, UploadLimits};
use gristmill_backend::{Backends, LibrarySearch};
use gristmill_client::http::{Request, Response};
use gristmill_client::{ClientError, Connection};
use gristmill_control::{
    AssetLimits, Control, ControlParts, FigureParts, Progress, ProverConfig, SampleRun,
    SampleRunner,
};
use gristmill_core::{BufferPool, HashKeyId, Name, Origins, PipelineLimits};
use gristmill_http::{
    DataPlane, Inference, InferenceConfig, ModelChange, ModelRepository, ObserverConfig,
};
use gristmill_log::Log;
use gristmill_metrics::LabelSlots;
use gristmill_metrics::usage::UsageStore;
use gristmill_platform::child::{ChildRunner, RunnerConfig};
use gristmill_sandbox::{NoOutgoing, NoStores, Sandbox, SandboxConfig};
use gristmill_snapshot::{Cors, Operator};
use gristmill_state::SampleAnswer;
use gristmill_store::Store;
use gristmill_transport::credentials::KeyHasher;
use gristmill_transport::{Connections, Problem, Shutdown};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{DuplexStream, duplex};
use tokio::runtime::{Builder, Runtime};

use super::client::Client;
use super::setup::ADMIN_TOKEN;

/// The address of a plane in memory.
pub(super) const IN_MEMORY: &str = "http://in-memory";

/// The client of all connections.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The bytes of a connection that are on their way.
const ON_THE_WAY_BYTES: usize = 64 << 10;

/// More than any of these tests takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Two planes over one control plane.
pub(crate) struct Planes {
    /// Without a key.
    pub(crate) data: Client,
    /// With the admin token.
    pub(crate) admin: Client,
    _directory: TempDir,
}

/// One plane. A new connection to it begins with each request.
pub(super) struct PlaneInMemory {
    /// It runs while a request is under way.
    runtime: Arc<Runtime>,
    serve: Serve,
}

/// Serves the other end of a connection.
type Serve = Box<dyn Fn(DuplexStream) + Send + Sync>;

impl PlaneInMemory {
    pub(super) fn send(
        &self,
        request: Request<Bytes>,
    ) -> Result<gristmill_client::Answer, ClientError> {
        self.runtime.block_on(async {
            let (near, far) = duplex(ON_THE_WAY_BYTES);
            (self.serve)(far);
            let (_, authority) = IN_MEMORY.split_once("://").unwrap();
            Connection::over(authority, near).await?.send(request).await
        })
    }
}

impl Planes {
    /// Two planes with nothing on them.
    pub(crate) fn open() -> Self {
        Self::open_to_pages(&[])
    }

    /// Two planes with nothing on them, on a server with these `cors_origins`.
    pub(crate) fn open_to_pages(origins: &[&str]) -> Self {
        let origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
        let cors = Cors::of(Origins::of(origins).unwrap());
        let runtime = Arc::new(Builder::new_current_thread().enable_all().build().unwrap());
        let directory = tempfile::tempdir().unwrap();
        let (data, admin) = runtime.block_on(planes(directory.path(), cors));
        let data = PlaneInMemory {
            runtime: runtime.clone(),
            serve: serving(move |request| data.clone().handle(request, CLIENT)),
        };
        let admin = PlaneInMemory {
            runtime,
            serve: serving(move |request| admin.clone().handle(request, CLIENT)),
        };
        Self {
            data: Client::in_memory(data),
            admin: Client::in_memory(admin).with_token(ADMIN_TOKEN),
            _directory: directory,
        }
    }

    /// Make a change by `PUT`. Returns the number of its release.
    #[track_caller]
    pub(crate) fn put_json(&self, below: &str, body: &Value) -> u64 {
        let answer = self.admin.put_json(&format!("/admin/v1/{below}"), body);
        answer.ok()["release"].as_u64().unwrap()
    }

    /// A tenant that needs no key.
    #[track_caller]
    pub(crate) fn open_tenant(&self, tenant: &str) -> u64 {
        self.put_json(&format!("tenants/{tenant}"), &json!({ "open": true }))
    }

    /// The tenant `tenant` with the key `key`.
    #[track_caller]
    pub(crate) fn keyed_tenant(&self, tenant: &str, key: &str) -> u64 {
        self.put_json(&format!("tenants/{tenant}"), &json!({ "api_keys": [key] }))
    }

    /// The release that serves.
    #[track_caller]
    pub(crate) fn release(&self) -> u64 {
        self.admin.get("/admin/v1/status").ok()["release"].as_u64().unwrap()
    }
}

/// Serves connections with the answers of `handle`.
fn serving<F, B>(handle: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static) -> Serve
where
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    Box::new(move |connection| {
        let handle = handle.clone();
        let answer = service_fn(move |request| {
            let answering = handle(request);
            async move { Ok::<_, Infallible>(answering.await) }
        });
        let serving = http1::Builder::new().serve_connection(TokioIo::new(connection), answer);
        // The client notices a connection that breaks.
        tokio::spawn(async move { drop(serving.await) });
    })
}

/// No pipeline of these tests has samples.
struct NoSamples;

#[async_trait]
impl SampleRunner for NoSamples {
    async fn run(&self, run: SampleRun<'_>) -> SampleAnswer {
        panic!("no pipeline has samples, but {:?} runs", run.name)
    }
}

#[async_trait]
impl Trials for NoSamples {
    async fn try_out(&self, trial: Trial) -> Tried {
        panic!("no pipeline serves, but {:?} is tried", trial.route.pipeline)
    }
}

/// No request of these tests loads a model.
struct NoModels;

#[async_trait]
impl ModelRepository for NoModels {
    async fn change(
        &self,
        _: Option<&Operator>,
        model: Name,
        change: ModelChange,
    ) -> Result<(), Problem> {
        panic!("there is no model {model}: {change:?}")
    }

    fn store_trouble(&self) -> Option<&'static str> {
        None
    }
}

/// The planes over a control plane in this directory. The parts that live as long as a process
/// stay: there are few such tests.
async fn planes(directory: &Path, cors: Cors) -> (DataPlane, AdminPlane) {
    let (pool, log) = (BufferPool::new(0), Log::of_nothing().unwrap());
    let hasher = KeyHasher::new(&[7; 32]);
    let root = hasher.hash(ADMIN_TOKEN);
    let control = Arc::new(control(directory, pool.clone(), hasher.id()).await);
    let observing = ObserverConfig {
        edges: Box::leak(Box::default()),
        requests: Box::leak(Box::default()),
        tracer: None,
        access_log: false,
        slow: None,
    };
    let observer = Observer::new(Observed {
        control: control.clone(),
        edges: observing.edges,
        requests: observing.requests,
        heap: || Heap { committed: 0, committed_peak: 0 },
        pool: pool.clone(),
        connections: ["data", "admin"].map(|plane| (plane, Connections::new(1, None))),
        log: log.clone(),
        tenant_bytes_max: 1 << 20,
        version: "in memory",
    });
    let rules = InferenceConfig {
        open_tenant: None,
        admin_token: root,
        hasher: hasher.clone(),
        message_bytes_max: 1 << 20,
        timeout: TIMEOUT,
        observer: observing,
    };
    let cell = control.cell().clone();
    let inference = Inference::new(cell.clone(), Arc::new(NoModels), Shutdown::new(), pool, rules);
    let admin = AdminPlane::new(AdminParts {
        control,
        keys: AdminKeys { root, hasher },
        limits: UploadLimits { upload_bytes_max: 1 << 20, upload_timeout: TIMEOUT },
        log,
        scrapes: Scrapes::new(observer.into()),
        trials: Arc::new(NoSamples),
        tls: Vec::new(),
        shutdown: Shutdown::new(),
    });
    (DataPlane::new(cell, inference, cors), admin.unwrap())
}

async fn control(directory: &Path, pool: BufferPool, hash_key: HashKeyId) -> Control {
    let sandbox = SandboxConfig::new(directory.join("compiled"));
    let usage = UsageStore::open(&directory.join("usage"), 1, SystemTime::now()).unwrap();
    let parts = ControlParts {
        store: Arc::new(Store::open_local(&directory.join("store")).unwrap()),
        sandbox: Sandbox::new(&sandbox, pool.clone()).unwrap(),
        backends: Backends::open(&LibrarySearch::default(), pool, usize::MAX).unwrap(),
        limits: PipelineLimits::default(),
        tenant_bytes_max: 1 << 20,
        tenant_compiled_bytes_max: 1 << 30,
        asset_limits: AssetLimits { bytes_max: 1 << 20, tenant_bytes_max: 1 << 20 },
        keep_releases: 1000,
        waiting_bytes_max: 1 << 20,
        hash_key: Some(hash_key),
        prover: ProverConfig {
            runner: ChildRunner::new(RunnerConfig::new(&["none"])),
            directory: directory.join("proofs"),
            timeout: TIMEOUT,
            memory_bytes: 1 << 20,
        },
        sample_runner: Arc::new(NoSamples),
        samples_timeout: TIMEOUT,
        progress: Progress::default(),
        figures: FigureParts { label_slots: LabelSlots::new(1).into(), usage: usage.into() },
        stores: Arc::new(NoStores),
        outgoing: Arc::new(NoOutgoing),
        following: None,
    };
    Control::open(parts).await.unwrap()
}
