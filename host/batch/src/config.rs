//! The configuration of batching. Names that Triton's `dynamic_batching` has mean the same as
//! there.

use std::time::Duration;

use gristmill_core::Padding;

/// The limits of a lane and the rules for its batches. The caller validates it: sizes and limits
/// must be at least 1, and preferred sizes must ascend and be at most the maximum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneConfig {
    /// Maximum rows in a batch.
    pub max_batch_size: usize,
    /// Preferred sizes, ascending. A batch gets the largest of them that the queue fills.
    pub preferred_batch_sizes: Vec<usize>,
    /// The sizes of the batches that the model runs, ascending and up to the maximum: a batch is
    /// padded to the next of them. Empty: any size. A lane clears them if rows form no batches, or
    /// if an input has texts.
    pub allowed_batch_sizes: Vec<usize>,
    /// How requests with rows of different lengths share batches, as was proven. A lane clears it
    /// if rows form no batches.
    pub padding: Padding,
    /// How long a request may wait for others while an instance is idle. Zero: it does not wait.
    pub max_queue_delay: Duration,
    /// One queue policy for each priority level, at least one. The first is for the highest level.
    pub levels: Vec<QueuePolicy>,
    /// The level of requests that name no level, counted from 0.
    pub default_level: usize,
    /// After this time in a level a request moves up by one level, so that no request starves.
    pub ageing: Duration,
    /// The limits of the whole queue.
    pub queue: QueueLimits,
    /// The limits of one tenant's requests in the queue.
    pub tenant_queue: QueueLimits,
    /// Whether the independence of rows is only declared, not proven. Then a request is never cut,
    /// and some requests of shared or padded batches are run again alone and compared.
    pub rows_are_declared: bool,
    /// Whether submitting tasks may run short batches themselves. Must be false if the number of
    /// rows says little about a batch's time.
    pub leads: bool,
    /// The time from the last deadline of a run's requests until the run is told to end.
    pub run_grace: Duration,
    /// The time from then until its instance is given up, if the run goes on.
    pub lost_after: Duration,
}

/// The default of [`LaneConfig::lost_after`]: a single operator should not take longer.
pub const LOST_AFTER: Duration = Duration::from_secs(10);

/// Maximum rows and bytes that may be queued. Further requests are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Maximum rows.
    pub rows: usize,
    /// Maximum bytes.
    pub bytes: usize,
}

/// The queueing of one priority level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePolicy {
    /// Maximum requests in this level. None: only [`QueueLimits`] apply.
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
    /// It stays queued, behind all other requests of its level.
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
            allowed_batch_sizes: Vec::new(),
            padding: Padding::default(),
            max_queue_delay: Duration::ZERO,
            levels: vec![QueuePolicy::default()],
            default_level: 0,
            ageing: Duration::from_secs(1),
            queue: limits,
            tenant_queue: limits,
            rows_are_declared: false,
            leads: true,
            run_grace: Duration::from_secs(1),
            lost_after: LOST_AFTER,
        }
    }
}
