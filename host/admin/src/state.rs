//! The parts that all resources of the admin plane share.

use std::sync::Arc;
use std::time::Duration;

use gristmill_control::Control;
use gristmill_core::Opaque;
use gristmill_observe::Scrapes;
use gristmill_telemetry::Log;
use gristmill_transport::Tls;
use tokio::sync::Semaphore;

use crate::caller::Tokens;

/// Bounds on uploads.
#[derive(Clone, Copy, Debug)]
pub struct UploadLimits {
    /// The most bytes of an uploaded file.
    pub upload_bytes_max: usize,
    /// From the end of the head to the end of the body.
    pub upload_timeout: Duration,
}

/// The parts that resources share.
pub(crate) struct State {
    pub(crate) control: Opaque<Arc<Control>>,
    pub(crate) tokens: Tokens,
    pub(crate) limits: UploadLimits,
    pub(crate) log: Log,
    pub(crate) scrapes: Opaque<Scrapes>,
    /// Answers about usage that are made at the same time: each may read many files.
    pub(crate) usage_turns: Arc<Semaphore>,
    /// The TLS of each plane that has it, by the plane's name.
    pub(crate) tls: Opaque<Vec<(&'static str, Tls)>>,
}
