//! What a submitter gives a lane, and what it gets back. Plain data.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{BatchRecord, Deadline, ModelUse, Name, NamedTensor, Tensor};

use crate::times::Times;

/// One request for a lane.
pub struct Submission {
    /// The sender. Requests of one tenant queue among themselves.
    pub tenant: Name,
    /// The tenant's share of contended batches, relative to the weights of others; at least 1.
    pub weight: u32,
    /// Priority level; 1 is served first. None, or a level that the lane does not have, means its
    /// default.
    pub priority: Option<u32>,
    /// How long it may be queued, if the level lets requests set a timeout.
    pub timeout: Option<Duration>,
    /// A tensor for each of the model's inputs, in any order.
    pub inputs: Vec<NamedTensor>,
    /// When the request reached the host. Its duration counts from then.
    pub arrived: Instant,
    /// When its submitter stops waiting.
    pub deadline: Deadline,
    /// Whether it shares batches only with requests of its tenant.
    pub keeps_apart: bool,
    /// Whether its submitter submits more in the same turn, which may share its batch.
    pub more_follow: bool,
}

/// The priority of the lane's last level, however many it has.
pub const LAST_PRIORITY: u32 = u32::MAX;

/// The answer to a request, or to a part of it: a batch makes it, and the lane passes it on.
#[derive(Debug, Default)]
pub struct Answered {
    /// The outputs in the model's order, with the request's own rows.
    pub outputs: Vec<Tensor>,
    /// How long it was queued.
    pub queued: Duration,
    /// The times of its batch, or of its batches together.
    pub times: Times,
    /// The rows of its batch; of the largest if it ran in several.
    pub batch_rows: usize,
    /// The tenants with requests in its batch; the most if it ran in several.
    pub batch_tenants: usize,
    /// Its use of the model.
    pub used: ModelUse,
    /// The provider that ran it, if the model has several.
    pub provider: Option<&'static str>,
    /// Its batch, if that is traced; the last one if it ran in several.
    pub batch: Option<Arc<BatchRecord>>,
}
