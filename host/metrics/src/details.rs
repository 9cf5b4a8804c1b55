//! The figures of requests with all stages and outcomes: of one target, or of several together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use gristmill_core::{
    CallUsage, ErrorCode, ModelUse, Outcome, PluginCall, Record, Shards, Stage, Step,
};

use crate::collected::{Collected, Distribution};
use crate::family;
use crate::histogram::{DURATION_BOUNDS_S, Durations, nanos};

/// The name under which the pipelines without details of their own stand together. It is not the
/// name of any tenant.
const OTHER: &str = "_other";

/// A slot that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct LabelSlot(pub(crate) Arc<AtomicUsize>);

impl Drop for LabelSlot {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// The figures with all stages and outcomes.
#[derive(Debug)]
pub(crate) struct Details {
    shards: Shards<Shard>,
    /// The slot that these figures take, if they belong to one target alone.
    slot: Option<LabelSlot>,
}

/// The number of outcomes: the codes, answered, abandoned.
const OUTCOMES: usize = ErrorCode::ALL.len() + 2;
const ANSWERED: usize = ErrorCode::ALL.len();
const ABANDONED: usize = ANSWERED + 1;

#[derive(Debug)]
struct Shard {
    outcomes: [AtomicU64; OUTCOMES],
    total: Durations,
    stages: [Durations; Stage::ALL.len()],
    rows: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    model_ns: AtomicU64,
    calls: [Calls; Stage::CALLS.len()],
}

/// The calls of one plugin.
#[derive(Debug, Default)]
struct Calls {
    cpu_ns: AtomicU64,
    memory_peak: AtomicU64,
}

impl Shard {
    fn add_use(&self, ModelUse { rows, time }: ModelUse) {
        self.rows.fetch_add(rows as u64, Relaxed);
        self.model_ns.fetch_add(nanos(time), Relaxed);
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self {
            outcomes: std::array::from_fn(|_| AtomicU64::new(0)),
            total: Durations::default(),
            stages: std::array::from_fn(|_| Durations::default()),
            rows: AtomicU64::new(0),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            model_ns: AtomicU64::new(0),
            calls: Default::default(),
        }
    }
}

impl Details {
    pub(crate) fn new(slot: Option<LabelSlot>) -> Self {
        Self { shards: Shards::default(), slot }
    }

    /// Add a request that has ended.
    pub(crate) fn add(&self, record: &Record) {
        let shard = self.shards.local();
        shard.add_use(record.used());
        let outcome = match record.outcome {
            Outcome::Answered => ANSWERED,
            Outcome::Abandoned => ABANDONED,
            Outcome::Failed(code) => code as usize,
        };
        shard.outcomes[outcome].fetch_add(1, Relaxed);
        shard.total.add(record.took);
        for Step { stage, took, .. } in record.steps() {
            shard.stages[stage as usize].add(took);
        }
        for (sum, more) in [
            (&shard.received, record.request_bytes as u64),
            (&shard.sent, record.response_bytes as u64),
        ] {
            sum.fetch_add(more, Relaxed);
        }
        // The waits for stores are parts of the calls.
        for lookup in record.calls().filter_map(PluginCall::lookup) {
            shard.stages[Stage::Lookup as usize].add(lookup);
        }
        for PluginCall { stage, used, .. } in record.calls() {
            let Some(CallUsage { cpu, memory_bytes, host_memory_bytes, .. }) = *used else {
                continue;
            };
            let Some(at) = Stage::CALLS.iter().position(|call| call == stage) else { continue };
            let calls = &shard.calls[at];
            calls.cpu_ns.fetch_add(nanos(cpu), Relaxed);
            let memory = (memory_bytes + host_memory_bytes) as u64;
            // Most calls do not have the most, and a load does not take the cache line away.
            if calls.memory_peak.load(Relaxed) < memory {
                calls.memory_peak.fetch_max(memory, Relaxed);
            }
        }
    }

    /// Add the use of a model.
    pub(crate) fn add_use(&self, used: ModelUse) {
        self.shards.local().add_use(used);
    }

    /// Add the values for the targets that have no details of their own.
    pub(crate) fn collect_other(&self, collected: &mut Collected) {
        self.collect([OTHER; 3], collected);
    }

    /// Whether they belong to one target alone.
    pub(crate) fn has_slot(&self) -> bool {
        self.slot.is_some()
    }

    /// Add the values of the tenant, pipeline and model in `whose`.
    pub(crate) fn collect(&self, whose: [&str; 3], collected: &mut Collected) {
        let sum = |figure: &dyn Fn(&Shard) -> u64| self.shards.all().map(figure).sum::<u64>();
        let load = |figure: &AtomicU64| figure.load(Relaxed);
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let [tenant, pipeline, model] = whose;
        let outcomes: Vec<u64> =
            (0..OUTCOMES).map(|at| sum(&|shard| load(&shard.outcomes[at]))).collect();
        if outcomes.iter().all(|count| *count == 0) {
            return;
        }
        for (at, count) in outcomes.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let outcome = match at {
                ANSWERED => "answered",
                ABANDONED => "abandoned",
                code => ErrorCode::ALL[code].as_str(),
            };
            collected.add(family::REQUESTS, &[tenant, pipeline, model, outcome], count);
        }
        let durations = |of: &dyn Fn(&Shard) -> &Durations| {
            let mut all = Distribution::of(&DURATION_BOUNDS_S);
            self.shards.all().for_each(|shard| of(shard).add_to(&mut all));
            all
        };
        collected.add(family::REQUEST_DURATION, &whose, durations(&|shard| &shard.total));
        for (at, stage) in Stage::ALL.into_iter().enumerate() {
            let stages = durations(&|shard| &shard.stages[at]);
            if stages.count() > 0 {
                let attributes = [tenant, pipeline, model, stage.name()];
                collected.add(family::STAGE_DURATION, &attributes, stages);
            }
        }
        collected.add(family::REQUEST_ROWS, &whose, sum(&|shard| load(&shard.rows)));
        for (direction, bytes) in [
            ("receive", sum(&|shard| load(&shard.received))),
            ("transmit", sum(&|shard| load(&shard.sent))),
        ] {
            collected.add(family::REQUEST_IO, &[tenant, pipeline, model, direction], bytes);
        }
        let model_time = seconds(sum(&|shard| load(&shard.model_ns)));
        collected.add(family::REQUEST_MODEL_TIME, &whose, model_time);
        for (at, stage) in Stage::CALLS.into_iter().enumerate() {
            let cpu = sum(&|shard| load(&shard.calls[at].cpu_ns));
            if cpu == 0 {
                continue;
            }
            let attributes = [tenant, pipeline, stage.name()];
            collected.add(family::PLUGIN_CPU_TIME, &attributes, seconds(cpu));
            let peaks = self.shards.all().map(|shard| load(&shard.calls[at].memory_peak));
            let peak = peaks.max().unwrap_or_default();
            collected.add(family::PLUGIN_MEMORY_PEAK, &attributes, peak);
        }
    }
}
