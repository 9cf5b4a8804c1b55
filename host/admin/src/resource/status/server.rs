//! The server in the status.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use gristmill_control::JobStatus;
use gristmill_core::{Digest, Underway};
use gristmill_sandbox::RuntimeStatus;
use gristmill_state::{DigestText, rfc3339};
use gristmill_transport::TlsReport;
use serde::Serialize;
use utoipa::ToSchema;

use crate::observe::{MemoryFigures, ProcessFigures};
use crate::resource::replicas::ReplicasDocument;
use crate::schemas::maybe;

#[derive(Serialize, ToSchema)]
pub(super) struct ServerDocument<'a> {
    pub(super) process: ProcessDocument,
    pub(super) memory: MemoryDocument,
    pub(super) requests: RequestsSummary,
    /// The backends that can run models, the best first.
    #[schema(value_type = Vec<String>)]
    pub(super) backends: Vec<&'static str>,
    pub(super) log: LogDocument,
    /// Of each plane that has it.
    #[schema(value_type = Option<BTreeMap<String, TlsDocument>>)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) tls: BTreeMap<&'static str, TlsDocument>,
    /// Work in child processes: the running jobs and the waiting ones.
    pub(super) jobs: Vec<JobDocument<'a>>,
    /// The runtimes of languages, once a plugin needed one or the server loaded them at its start.
    pub(super) runtimes: Vec<RuntimeDocument>,
    /// Plugins whose sources were loaded again since the start, because their runtime is another
    /// one than before. `jobs` has those that wait; those that failed are `failed` in `tenants`.
    pub(super) reloaded_plugins: u64,
    /// If the store is shared.
    #[schema(schema_with = maybe::<ReplicasDocument>)]
    #[serde(flatten)]
    pub(super) replicas: Option<ReplicasDocument>,
}

/// The server's process.
#[derive(Serialize, ToSchema)]
#[schema(as = ProcessStatus)]
pub(super) struct ProcessDocument {
    /// When it was started.
    #[schema(format = DateTime)]
    started: String,
    uptime_s: u64,
    resident_bytes: u64,
    resident_peak_bytes: u64,
    /// The part of the resident memory that no file has. The kernel can evict the rest.
    resident_anonymous_bytes: u64,
    /// Memory that the allocator has from the system, whether it is in use or not.
    heap_bytes: u64,
    heap_peak_bytes: u64,
    threads: u64,
    open_files: u64,
}

impl ProcessDocument {
    pub(super) fn of(figures: &ProcessFigures) -> Self {
        let since_epoch = figures.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            started: rfc3339(since_epoch.as_millis() as u64),
            uptime_s: figures.uptime.as_secs(),
            resident_bytes: figures.resident_bytes,
            resident_peak_bytes: figures.resident_peak_bytes,
            resident_anonymous_bytes: figures.resident_anonymous_bytes,
            heap_bytes: figures.heap.committed,
            heap_peak_bytes: figures.heap.committed_peak,
            threads: figures.threads,
            open_files: figures.files,
        }
    }
}

/// What holds the memory of the server. The memory of models, buffers, and most of what tenants
/// hold is the allocator's (`process.heap_bytes`), which keeps some of what is freed.
#[derive(Serialize, ToSchema)]
#[schema(as = MemoryStatus)]
pub(super) struct MemoryDocument {
    /// The requests, answers, tensors, pictures and plugin instances of all tenants, without
    /// those of shadows.
    tenants_bytes: u64,
    /// Compiled plugins: mapped files, whose pages the kernel can evict.
    plugin_files_bytes: u64,
    /// Assets of tenants, and files that plugins bring.
    assets_bytes: u64,
    /// Memory of plugin instances that ended, kept for later ones.
    plugin_memories_bytes: u64,
    /// Tensor buffers that are free, kept for later requests.
    buffers_bytes: u64,
    /// The sessions of models, on the host: what loading them took, and the memory that their runs
    /// keep.
    models_bytes: u64,
    /// Values of stores, kept for a while.
    store_caches_bytes: u64,
}

impl From<MemoryFigures> for MemoryDocument {
    fn from(figures: MemoryFigures) -> Self {
        Self {
            tenants_bytes: figures.tenants,
            plugin_files_bytes: figures.plugin_files,
            assets_bytes: figures.assets,
            plugin_memories_bytes: figures.plugin_memories,
            buffers_bytes: figures.buffers,
            models_bytes: figures.models,
            store_caches_bytes: figures.store_caches,
        }
    }
}

/// The requests that are under way; `GET /admin/v1/requests` names them.
#[derive(Serialize, ToSchema)]
#[schema(as = RequestsStatus)]
pub(super) struct RequestsSummary {
    under_way: usize,
    /// The age of the oldest of them.
    oldest_ms: Option<f64>,
}

impl RequestsSummary {
    /// The summary of requests of which the first is the oldest.
    pub(super) fn of(requests: &[Underway]) -> Self {
        let age = |request: &Underway| request.arrived.elapsed().as_micros() as f64 / 1e3;
        Self { under_way: requests.len(), oldest_ms: requests.first().map(age) }
    }
}

/// The server's log.
#[derive(Serialize, ToSchema)]
#[schema(as = LogStatus)]
pub(super) struct LogDocument {
    /// The lines that were dropped while standard error took nothing.
    pub(super) dropped_lines: u64,
}

/// The TLS of a plane.
#[derive(Serialize, ToSchema)]
#[schema(as = TlsStatus)]
pub(super) struct TlsDocument {
    /// When the certificate that serves ends.
    #[schema(format = DateTime)]
    not_after: Option<String>,
    /// The number of sets of files that have served.
    loaded: u64,
    /// The faults of the files as they are now, if they cannot serve.
    fault: Option<String>,
    handshakes: u64,
    handshakes_failed: u64,
    /// Connections whose first byte was not TLS.
    without_tls: u64,
}

impl From<TlsReport> for TlsDocument {
    fn from(report: TlsReport) -> Self {
        Self {
            not_after: report.not_after,
            loaded: report.loaded,
            fault: report.fault,
            handshakes: report.handshakes,
            handshakes_failed: report.handshakes_failed,
            without_tls: report.without_tls,
        }
    }
}

/// A runtime of a language.
#[derive(Serialize, ToSchema)]
#[schema(as = RuntimeStatus)]
pub(super) struct RuntimeDocument {
    language: &'static str,
    /// The digest of its file, which is its version.
    #[schema(value_type = DigestText)]
    digest: Digest,
    /// `ready`, `unused`, or `failed` if its code could not be loaded the last time: the log says
    /// why.
    state: &'static str,
}

impl From<RuntimeStatus> for RuntimeDocument {
    fn from(RuntimeStatus { version, is_loaded, has_failed }: RuntimeStatus) -> Self {
        let state = match (is_loaded, has_failed) {
            (true, _) => "ready",
            (false, true) => "failed",
            (false, false) => "unused",
        };
        Self { language: version.language.name(), digest: version.digest, state }
    }
}

/// A job in a child process.
#[derive(Serialize, ToSchema)]
#[schema(as = JobStatus)]
pub(super) struct JobDocument<'a> {
    job: &'static str,
    /// What it works on.
    subject: &'a str,
    /// `running` or `queued`.
    state: &'static str,
    waited_s: f64,
    running_s: Option<f64>,
}

impl<'a> JobDocument<'a> {
    pub(super) fn of(job: &'a JobStatus) -> Self {
        Self {
            job: job.job,
            subject: &job.subject,
            state: if job.running.is_some() { "running" } else { "queued" },
            waited_s: job.waited.as_secs_f64(),
            running_s: job.running.map(|running| running.as_secs_f64()),
        }
    }
}
