//! The part that both encodings of the Open Inference Protocol share: models and pipelines as the
//! protocol's clients see them.
//!
//! In reading order: `models` describes models, and `config` their configuration (once, as gRPC's
//! messages, which serialise to the JSON of HTTP), `run` runs a model or a pipeline, `tensors`
//! makes a model's inputs, `classes` those of its outputs, `pipeline` shows a pipeline as a model
//! of one text and `named` runs one with named inputs and outputs, `repository` loads and unloads
//! models, with what a call has `brought`, by what makes `model_changes`, and `decode` decompresses
//! bodies. `asked` is a request that runs.

mod asked;
mod brought;
mod classes;
pub(crate) mod config;
mod decode;
mod model_changes;
pub(crate) mod models;
mod named;
mod pipeline;
mod repository;
mod run;
mod tensors;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{BufferPool, Deadline, ErrorCode, KeyHash, Name};
use gristmill_serve::Gate;
use gristmill_snapshot::{Snapshot, SnapshotCell};
use gristmill_transport::credentials::{self, KeyHasher};
use gristmill_transport::{LineRate, Offload, Problem, RequestIds, Shutdown};
use http::HeaderMap;
use parking_lot::Mutex;

use crate::observer::{ObserverConfig, RequestObserver};

pub(crate) use self::asked::{InferenceCall, Ran};
pub(crate) use self::brought::Brought;
pub use self::brought::ModelFile;
pub use self::model_changes::{ModelChange, ModelRepository};
pub(crate) use self::repository::RepositoryChange;

/// Why shared memory is not offered.
pub(crate) const NO_SHARED_MEMORY: &str = "shared memory is not supported: a region of the host's memory would be open to every tenant, which is unsafe between tenants";

/// Bounds and rights of the Open Inference Protocol.
#[derive(Clone, Debug)]
pub struct InferenceConfig {
    /// The tenant used for calls without an API key.
    pub open_tenant: Option<Name>,
    /// The hash of the admin token that the server was started with.
    pub admin_token: KeyHash,
    /// Makes the hashes of keys.
    pub hasher: KeyHasher,
    /// The most bytes of a request. It also bounds the request's decompressed body, and its tensors
    /// if they are made of JSON or of typed contents.
    pub message_bytes_max: usize,
    /// From a request's arrival to its answer, if the client does not ask for less.
    pub timeout: Duration,
    /// How requests are observed.
    pub observer: ObserverConfig,
}

/// The state that all protocols of the data plane share; clones share it, too.
#[derive(Clone)]
pub struct Inference {
    shared: Arc<Shared>,
}

struct Shared {
    cell: Arc<SnapshotCell>,
    repository: Arc<dyn ModelRepository>,
    shutdown: Shutdown,
    pool: BufferPool,
    offload: Offload,
    gate: Gate,
    message_bytes_max: usize,
    timeout: Duration,
    observer: RequestObserver,
    /// Of lines about wrong keys.
    wrong_keys: Mutex<LineRate>,
    /// Makes ids for calls over gRPC, which have none.
    request_ids: RequestIds,
}

impl Inference {
    /// Serve the snapshots of `cell`, with tensors in memory of `pool`.
    pub fn new(
        cell: Arc<SnapshotCell>,
        repository: Arc<dyn ModelRepository>,
        shutdown: Shutdown,
        pool: BufferPool,
        config: InferenceConfig,
    ) -> Self {
        let InferenceConfig {
            open_tenant,
            admin_token,
            hasher,
            message_bytes_max,
            timeout,
            observer,
        } = config;
        let shared = Shared {
            cell,
            repository,
            shutdown,
            pool,
            offload: Offload::start(),
            gate: Gate { open_tenant, admin_token, hasher },
            message_bytes_max,
            timeout,
            observer: RequestObserver::new(observer),
            wrong_keys: Mutex::default(),
            request_ids: RequestIds::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The memory for tensors that clients send.
    pub(crate) fn pool(&self) -> &BufferPool {
        &self.shared.pool
    }

    /// The threads for work on large messages.
    pub(crate) fn offload(&self) -> &Offload {
        &self.shared.offload
    }

    /// What observes requests.
    pub(crate) fn observer(&self) -> &RequestObserver {
        &self.shared.observer
    }

    /// The rules for callers.
    pub(crate) fn gate(&self) -> &Gate {
        &self.shared.gate
    }

    /// Log that a call with a key was not admitted because of `problem`: its client may guess.
    /// As anyone can do that, there are a few lines in each interval.
    pub(crate) fn log_wrong_key(&self, problem: &Problem, headers: &HeaderMap, client: IpAddr) {
        let is_wrong = matches!(problem.code, ErrorCode::Unauthenticated | ErrorCode::Forbidden);
        let has_key = credentials::bearer(headers).is_some_and(|key| !key.is_empty());
        if !(is_wrong && has_key) {
            return;
        }
        if let Some(left_out) = self.shared.wrong_keys.lock().take(Instant::now()) {
            let code = problem.code.as_str();
            tracing::warn!(%client, code, left_out, "a call with a wrong key");
        }
    }

    /// The id of a request over gRPC in the log: its own, if that is safe there.
    pub(crate) fn id_of(&self, text: &str) -> Arc<str> {
        self.shared.request_ids.of_text(text)
    }

    /// The current snapshot.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.cell.load()
    }

    /// Why releases of other servers are not seen, in a word, if they are not.
    pub(crate) fn store_trouble(&self) -> Option<&'static str> {
        self.shared.repository.store_trouble()
    }

    /// The server's shutdown.
    pub(crate) fn shutdown(&self) -> &Shutdown {
        &self.shared.shutdown
    }

    /// Whether the server is about to end.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shared.shutdown.is_announced()
    }

    /// The most bytes of a message.
    pub(crate) fn message_bytes_max(&self) -> usize {
        self.shared.message_bytes_max
    }

    /// The longest time for a call.
    pub(crate) fn timeout(&self) -> Duration {
        self.shared.timeout
    }

    /// The deadline of a request that arrived at `arrived`.
    pub(crate) fn deadline(&self, arrived: Instant) -> Deadline {
        Deadline::at(arrived + self.shared.timeout)
    }
}
