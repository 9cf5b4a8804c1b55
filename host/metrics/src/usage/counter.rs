//! What the requests of one tenant to one pipeline or model add to.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use gristmill_core::{Charge, LateSink, ModelUse, Name, Named, Outcome, Record, Sink};
use serde::{Deserialize, Serialize};

/// Requests with the same key are summed together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The tenant.
    pub tenant: Name,
    /// The release that made the tenant: a later one of the same name is another one.
    pub since: u64,
    /// The pipeline. None if the tenant called the model itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Name>,
    /// The model.
    pub model: Name,
}

macro_rules! sums {
    ($($field:ident: $help:literal,)*) => {
        /// What requests used, summed over them.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Use {
            $(#[doc = $help] pub $field: u64,)*
        }

        impl Use {
            /// Add what other requests used.
            pub fn add(&mut self, other: &Self) {
                $(self.$field = self.$field.saturating_add(other.$field);)*
            }

            /// Take away a part of it.
            pub fn take_away(&mut self, part: &Self) {
                $(self.$field = self.$field.saturating_sub(part.$field);)*
            }
        }

        /// Counts what requests use.
        #[derive(Debug, Default)]
        pub struct Counter {
            $($field: AtomicU64,)*
        }

        impl Counter {
            /// Add what a request used.
            pub fn count(&self, used: &Use) {
                $(self.$field.fetch_add(used.$field, Relaxed);)*
            }

            /// Take away what was counted. A request that ends just now is counted in parts: what
            /// is not taken now is taken the next time.
            pub(crate) fn take(&self) -> Use {
                Use { $($field: self.$field.swap(0, Relaxed),)* }
            }
        }
    };
}

sums! {
    requests: "Requests that ended.",
    failed: "Of these, requests that failed or were abandoned.",
    rows: "Rows that models ran.",
    plugin_cpu_us: "CPU time of plugin calls, in microseconds.",
    model_us: "The share of the time of batches, by rows, in microseconds.",
    host_cpu_us: "The host's own CPU time, in microseconds.",
    queue_us: "Time in queues, in microseconds.",
    received_bytes: "Bytes of requests' bodies.",
    sent_bytes: "Bytes of answers' bodies.",
}

impl Use {
    /// What one request used.
    pub fn of(record: &Record) -> Self {
        let Charge {
            rows,
            plugin_cpu_us,
            model_us,
            host_cpu_us,
            queue_us,
            received_bytes,
            sent_bytes,
        } = record.charge();
        Self {
            requests: 1,
            failed: u64::from(record.outcome != Outcome::Answered),
            rows,
            plugin_cpu_us,
            model_us,
            host_cpu_us,
            queue_us,
            received_bytes,
            sent_bytes,
        }
    }
}

impl Use {
    /// What the runs of this model took of a request's use: rows, and the time of the model and of
    /// its queue.
    pub fn of_runs(record: &Record, model: &Name) -> Self {
        let (mut used, mut queue) = (ModelUse::default(), Duration::ZERO);
        for run in record.runs().filter(|run| run.model == *model) {
            used.add(run.used);
            queue += run.queue;
        }
        // Rounded down, so that all parts together are never more than the whole.
        let (model_us, queue_us) = (used.time.as_micros() as u64, queue.as_micros() as u64);
        Self { rows: used.rows as u64, model_us, queue_us, ..Self::default() }
    }
}

impl Named for Counter {}

impl Sink for Counter {
    fn record(&self, record: &Record, _: Duration) {
        self.count(&Use::of(record));
    }
}

impl LateSink for Counter {
    fn ran_late(&self, used: ModelUse) {
        let Charge { rows, model_us, .. } = used.charge();
        self.count(&Use { rows, model_us, ..Use::default() });
    }
}
