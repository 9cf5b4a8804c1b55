//! A batch and the instance that runs it, from the start of the run until the instance is free
//! again.
//!
//! Knows nothing of the queue: `state` makes assignments and takes back what they used.

use std::time::Duration;

use gristmill_core::{Turn, charged_elsewhere};

use crate::batch::{Batch, Ran};
use crate::running::Instance;
use crate::sharing::Sharing;
use crate::stager::Stager;
use crate::statistics::CountedBatch;
use crate::sync;
use crate::tally::Tally;

/// Batches shorter than this are answered by the thread that ran them, because waking another
/// worker would cost as much.
const HANDED_OVER_TIME_MIN: Duration = Duration::from_millis(1);

/// A batch that is to run now, and the instance that runs it.
pub(crate) struct Assignment {
    pub(crate) batch: Batch,
    pub(crate) assigned: AssignedInstance,
}

/// An instance while a run has it.
pub(crate) struct AssignedInstance {
    pub(crate) instance: Instance,
    /// The run's number in [`RunningBatches`](crate::running::RunningBatches).
    pub(crate) run: u64,
    /// Whether a submitting task runs it, not a worker.
    pub(crate) led: bool,
}

/// A batch that has run but is not answered yet, and its instance, which is not put back yet.
pub(crate) struct Finished {
    pub(crate) batch: Batch,
    pub(crate) rows: usize,
    /// The key of its shape, with the largest bucket, if it ran at the size of its bucket.
    pub(crate) shape_key: Option<u64>,
    pub(crate) assigned: AssignedInstance,
    /// The figures of the run from which the lane learns. None if it has learned from them already,
    /// or if nothing ran.
    pub(crate) ran: Option<Ran>,
    /// Whether the instance waits for the clients of this batch. Decided when the lane learns from
    /// it.
    pub(crate) should_wait: bool,
}

impl Assignment {
    /// Run the batch and count it. It is counted before it is answered, so that a client with an
    /// answer sees it counted.
    pub(crate) fn run(self, stager: &Stager, sharing: &Sharing, tally: &Tally) -> Finished {
        let Self { mut batch, mut assigned } = self;
        let turn = Turn::begin();
        let ran = batch.run(&mut assigned.instance, stager, sharing);
        // A task that leads runs it in a turn of its connection.
        charged_elsewhere(Duration::from_nanos(turn.took()));
        if let Some(Ran { times, bisections, elements, .. }) = &ran {
            let tenant_rows = batch.tenant_rows();
            let (tenants, at) = (tenant_rows.len(), sync::time_of_day());
            let (bisections, elements) = (*bisections, *elements);
            let counted =
                CountedBatch { tenant_rows: &tenant_rows, times, bisections, elements, at };
            tally.recent().count_batch(&counted);
            drop(tenant_rows);
            batch.tenants = tenants;
        }
        let is_at_bucket = ran.as_ref().is_some_and(|ran| ran.is_at_bucket);
        let (rows, shape_key) = (batch.rows(), batch.shape_key().filter(|_| is_at_bucket));
        Finished { rows, shape_key, batch, assigned, ran, should_wait: false }
    }
}

impl Finished {
    /// Whether it was so short that handing it to another thread would not pay.
    pub(crate) fn is_short(&self) -> bool {
        self.ran.as_ref().is_none_or(|ran| ran.times.total() < HANDED_OVER_TIME_MIN)
    }
}
