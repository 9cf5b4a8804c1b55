//! The CPU time that the host's threads take for a call: those that talk to stores and to other
//! services.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::Rate;

use crate::meter::Meter;

/// Who pays for work of the host's threads.
#[derive(Debug, Default)]
pub(crate) struct HostWork {
    /// The rate of the CPU time of the tenant's plugins, in nanoseconds.
    pub(crate) rate: Arc<Rate>,
    /// The meter of the plugin's call that asked for it, if one did.
    pub(crate) meter: Option<Arc<Meter>>,
}

impl HostWork {
    /// Charge the tenant's rate and the call for so much CPU time.
    pub(crate) fn charge(&self, cpu: Duration) {
        let nanos = u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX);
        self.rate.spend(nanos, Instant::now());
        if let Some(meter) = &self.meter {
            meter.add_host_work(nanos);
        }
    }
}
