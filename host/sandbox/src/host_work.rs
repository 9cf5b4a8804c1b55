//! The CPU time that the host's threads take for a call: those that talk to stores and to other
//! services.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gristmill_core::Rate;

/// Who pays for work of the host's threads: the tenant's rate, and the limit of the call that asked
/// for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostWork {
    /// The rate of the CPU time of the tenant's plugins, in nanoseconds.
    pub(crate) rate: Arc<Rate>,
    /// The CPU time of such work for the call so far, in nanoseconds.
    pub(crate) of_call: Arc<AtomicU64>,
}

impl HostWork {
    /// Charge both for so much CPU time.
    pub(crate) fn charge(&self, cpu: Duration) {
        let nanos = u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX);
        self.rate.spend(nanos, Instant::now());
        self.of_call.fetch_add(nanos, Ordering::Relaxed);
    }
}
