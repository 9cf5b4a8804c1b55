//! The limits on one tenant's use of the host, and the lines that the host keeps for it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use gristmill_core::{ByteBudget, Rate, RateLimit, Slowest};
use gristmill_sandbox::{Account, KeptLines};

use crate::in_flight::RowsInFlight;

/// A tenant's use of the host, and the host's own limits on it. A tenant has the same quota in
/// every snapshot, so a release resets nothing that was used.
pub struct TenantQuota {
    /// Places for plugin calls. Calls beyond them wait for one another, not for those of others.
    /// Also the rate of their CPU time.
    pub calls: Account,
    /// Bytes of requests and answers, and of what plugin calls hold.
    pub bytes: Arc<ByteBudget>,
    /// The last lines of its plugins, which are bounded by themselves.
    pub lines: Arc<KeptLines>,
    /// Its slowest requests of the last minutes.
    pub slowest: Arc<Slowest>,
    /// The rate of its requests.
    pub requests: Rate,
    /// Its rows under way.
    pub rows: RowsInFlight,
    /// Requests that were refused because of [`QuotaLimits`].
    pub refused: AtomicU64,
}

/// The limits that a tenant's document sets on its use over time. One that is not given does not
/// exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaLimits {
    /// Requests.
    pub requests: Option<RateLimit>,
    /// Rows under way.
    pub rows: Option<usize>,
    /// Nanoseconds of CPU time of plugin calls.
    pub plugin_cpu: Option<RateLimit>,
}

/// The most rows of one tenant's shadows under way.
const SHADOW_ROWS_MAX: usize = 256;

/// The part of a tenant's limits that its shadows have besides.
const SHADOW_PART: u64 = 10;

impl QuotaLimits {
    /// The limits of the tenant's shadows.
    pub fn for_shadows(&self) -> Self {
        let rows = |rows: usize| (rows / SHADOW_PART as usize).clamp(1, SHADOW_ROWS_MAX);
        let part = |limit: RateLimit| RateLimit {
            tokens: (limit.tokens / SHADOW_PART).max(1),
            burst: (limit.burst / SHADOW_PART).max(1),
            ..limit
        };
        Self {
            requests: None,
            rows: Some(self.rows.map_or(SHADOW_ROWS_MAX, rows)),
            plugin_cpu: self.plugin_cpu.map(part),
        }
    }
}

impl TenantQuota {
    /// A quota of which nothing is used, without [`QuotaLimits`].
    pub fn new(calls: Account, bytes: Arc<ByteBudget>) -> Self {
        Self {
            calls,
            bytes,
            lines: Arc::default(),
            slowest: Arc::default(),
            requests: Rate::default(),
            rows: RowsInFlight::default(),
            refused: AtomicU64::new(0),
        }
    }

    /// Let these limits hold from now on, for all snapshots. What was used stays used.
    pub fn put_in_force(&self, limits: &QuotaLimits, now: Instant) {
        self.requests.set(limits.requests, now);
        self.rows.set(limits.rows);
        self.calls.cpu().set(limits.plugin_cpu, now);
    }
}
