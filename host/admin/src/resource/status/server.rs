//! The server in the status.

use std::collections::BTreeMap;

use gristmill_control::JobStatus;
use gristmill_transport::TlsReport;
use serde::Serialize;
use utoipa::ToSchema;

use crate::resource::replicas::ReplicasDocument;
use crate::schemas::maybe;

#[derive(Serialize, ToSchema)]
pub(super) struct ServerDocument<'a> {
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
    /// If the store is shared.
    #[schema(schema_with = maybe::<ReplicasDocument>)]
    #[serde(flatten)]
    pub(super) replicas: Option<ReplicasDocument>,
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
