//! The configuration of batching. Names of Triton's `dynamic_batching` mean the same here.

use std::time::Duration;

/// The limits of a lane and the rules for its batches. Its maker validates it: sizes and limits are
/// at least 1, preferred sizes ascend and are at most the maximum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneConfig {
    /// The most rows in a batch.
    pub max_batch_size: usize,
    /// Sizes worth waiting for, ascending; the largest that the queue fills is taken.
    pub preferred_batch_sizes: Vec<usize>,
    /// How long a request may wait for others while an instance is idle; zero: not at all.
    pub max_queue_delay: Duration,
    /// One queue policy for each priority level, the first for the highest; at least one.
    pub levels: Vec<QueuePolicy>,
    /// The level of requests that name none, from 0.
    pub default_level: usize,
    /// After so long in a level a request moves up by one, so that none starves.
    pub ageing: Duration,
    /// The most that waits.
    pub queue: QueueLimits,
    /// The most of one tenant that waits.
    pub tenant_queue: QueueLimits,
    /// Whether submitting tasks may run short batches themselves. Not where a batch's rows say
    /// little about how long it takes.
    pub leads: bool,
    /// How long after the last deadline of its requests a run is told to end.
    pub run_grace: Duration,
    /// How long after that its instance is given up, if it goes on.
    pub lost_after: Duration,
}

/// An operator that takes longer than this by itself holds up an instance for too long.
pub const LOST_AFTER: Duration = Duration::from_secs(10);

/// The most that may wait; further requests are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// The most rows.
    pub rows: usize,
    /// The most bytes.
    pub bytes: usize,
}

/// The queueing of one priority level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePolicy {
    /// The most requests in this level; none: only [`QueueLimits`] count.
    pub max_requests: Option<usize>,
    /// The longest time in the queue. None means until the deadline.
    pub timeout: Option<Duration>,
    /// The action for a request that was queued longer.
    pub timeout_action: TimeoutAction,
    /// Whether a request may name a shorter timeout of its own.
    pub allow_timeout_override: bool,
}

/// The action for a request that was queued for longer than its timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeoutAction {
    /// It fails.
    #[default]
    Reject,
    /// It waits on, behind everything else in its level.
    Delay,
}

impl LaneConfig {
    /// Work-conserving batches of at most `max_batch_size` rows, one priority, a queue of
    /// `queue_rows` rows.
    pub fn new(max_batch_size: usize, queue_rows: usize) -> Self {
        let limits = QueueLimits { rows: queue_rows, bytes: usize::MAX };
        Self {
            max_batch_size,
            preferred_batch_sizes: Vec::new(),
            max_queue_delay: Duration::ZERO,
            levels: vec![QueuePolicy::default()],
            default_level: 0,
            ageing: Duration::from_secs(1),
            queue: limits,
            tenant_queue: limits,
            leads: true,
            run_grace: Duration::from_secs(1),
            lost_after: LOST_AFTER,
        }
    }
}
