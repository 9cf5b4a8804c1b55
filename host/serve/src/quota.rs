//! A tenant's quota: whether a request is let through, and what is left for later ones.
//!
//! A request is counted when its caller was found, before its body is read. A refused one costs a
//! few atomic operations.
//!
//! Invariants: rows count while their request waits for its model; the time of plugins counts turn
//! by turn as it is used, however the call ends. A release that changes a quota resets nothing that
//! was used; a refused release or a dry run changes none. A message of a gRPC stream counts as one
//! request, and so does each row of a request for a pipeline with named inputs: each is a run of
//! the pipeline. No lock is taken.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gristmill_core::{ClientError, ErrorCode, Exhausted, RateLimit, Remaining};
use gristmill_snapshot::{HeldRows, TenantQuota, TooManyRows};

use crate::access::NamedTenant;

/// A tenant's quota of requests, and what is left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestQuota {
    /// The quota.
    pub limit: RateLimit,
    /// Requests that can be sent at once.
    pub left: u64,
    /// The time after which the whole burst can be sent, if nothing is sent meanwhile.
    pub full_after: Duration,
}

/// A request would go beyond the quota of its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaError {
    /// The tenant sent too many requests.
    #[error(
        "the tenant's quota of requests is used up: {} requests in {} s, at most {} at once; the \
         next one can be sent in {} s",
        limit.tokens, limit.every.as_secs(), limit.burst, seconds(*after)
    )]
    Requests {
        /// The quota.
        limit: RateLimit,
        /// The time until the next request.
        after: Duration,
    },
    /// A request has more rows than the tenant can send requests at once.
    #[error(
        "the request has {rows} rows, each of which counts as a request: the tenant's quota is {} \
         at once; send fewer rows",
        limit.burst
    )]
    TooManyAtOnce {
        /// The quota.
        limit: RateLimit,
        /// The request's rows.
        rows: u64,
    },
    /// The tenant's plugins used too much CPU time.
    #[error(
        "the tenant's quota of plugins' CPU time is used up: {} s in {} s; the next request \
         can be sent in {} s",
        limit.tokens / NANOS, limit.every.as_secs(), seconds(*after)
    )]
    PluginCpu {
        /// The quota, in nanoseconds.
        limit: RateLimit,
        /// The time until the next request.
        after: Duration,
    },
    /// The tenant has too many rows under way.
    #[error(
        "this request would raise the tenant's rows in flight to {}; its quota is {}",
        .0.wanted, .0.max
    )]
    Rows(TooManyRows),
}

const NANOS: u64 = 1_000_000_000;

impl ClientError for QuotaError {
    fn code(&self) -> ErrorCode {
        ErrorCode::QuotaExceeded
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Requests { after, .. } | Self::PluginCpu { after, .. } => Some(*after),
            Self::Rows(_) | Self::TooManyAtOnce { .. } => None,
        }
    }
}

impl NamedTenant<'_> {
    /// Count a request that came at `now`. `quota` becomes the quota of requests, if the tenant has
    /// one, also if the request is refused.
    ///
    /// # Errors
    /// The tenant has no request left, or its plugins owe CPU time.
    pub fn count_request(
        self,
        now: Instant,
        quota: &mut Option<RequestQuota>,
    ) -> Result<(), QuotaError> {
        let (limits, own_quota) = (&self.tenant.limits, &*self.tenant.quota);
        own_quota.calls.note_request(now);
        if let Some(limit) = limits.plugin_cpu {
            let checked = own_quota.calls.cpu().check(now);
            checked.map_err(|Exhausted { after, .. }| {
                refused(own_quota, QuotaError::PluginCpu { limit, after })
            })?;
        }
        self.take_requests(1, now, quota)
    }

    /// Count the rows of a request that came before `now` and was counted as one. `quota` is as in
    /// [`count_request`](Self::count_request). A refused request stays counted as one: its body was
    /// read.
    ///
    /// # Errors
    /// The tenant has fewer requests left than there are rows.
    pub fn count_rows(
        self,
        rows: u64,
        now: Instant,
        quota: &mut Option<RequestQuota>,
    ) -> Result<(), QuotaError> {
        if rows <= 1 {
            return Ok(());
        }
        if let Some(limit) = self.tenant.limits.requests.filter(|limit| rows > limit.burst) {
            return Err(refused(&self.tenant.quota, QuotaError::TooManyAtOnce { limit, rows }));
        }
        self.take_requests(rows - 1, now, quota).map_err(|error| match error {
            QuotaError::Requests { limit, after } => {
                // The next try is counted as one request first.
                let one = RateLimit { burst: 1, ..limit }.window();
                QuotaError::Requests { limit, after: after + one }
            }
            other => other,
        })
    }

    fn take_requests(
        self,
        count: u64,
        now: Instant,
        quota: &mut Option<RequestQuota>,
    ) -> Result<(), QuotaError> {
        let own_quota = &*self.tenant.quota;
        let Some(limit) = self.tenant.limits.requests else { return Ok(()) };
        match own_quota.requests.take(count, now) {
            Ok(None) => {}
            Ok(Some(Remaining { tokens: left, full_after })) => {
                *quota = Some(RequestQuota { limit, left, full_after });
            }
            Err(Exhausted { after, full_after }) => {
                *quota = Some(RequestQuota { limit, left: 0, full_after });
                return Err(refused(own_quota, QuotaError::Requests { limit, after }));
            }
        }
        Ok(())
    }
}

/// Count so many rows of a request as under way.
///
/// # Errors
/// The tenant has too many rows under way.
pub(crate) fn held_rows(quota: &TenantQuota, rows: usize) -> Result<HeldRows<'_>, QuotaError> {
    quota.rows.take(rows).map_err(|over| refused(quota, QuotaError::Rows(over)))
}

fn refused(quota: &TenantQuota, error: QuotaError) -> QuotaError {
    quota.refused.fetch_add(1, Ordering::Relaxed);
    error
}

/// The time in whole seconds, rounded up.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use gristmill_core::{ClientError, ErrorCode, RateLimit};
    use gristmill_snapshot::{Access, QuotaLimits, TooManyRows};

    use super::{QuotaError, RequestQuota};
    use crate::access::NamedTenant;
    use crate::samples;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits(requests: Option<u64>, cpu_s: Option<u64>) -> QuotaLimits {
        let minute = 60 * SECOND;
        let nanos = |s: u64| s * 1_000_000_000;
        QuotaLimits {
            requests: requests.map(|tokens| RateLimit { tokens, every: SECOND, burst: tokens }),
            rows: None,
            plugin_cpu: cpu_s.map(|s| RateLimit {
                tokens: nanos(s),
                every: minute,
                burst: nanos(s),
            }),
        }
    }

    #[test]
    fn a_tenant_without_a_quota_is_never_refused_and_told_nothing() {
        let (name, tenant) = (samples::name("acme"), samples::tenant(Access::Open).into());
        let caller = NamedTenant { name: &name, tenant: &tenant };
        let mut quota = None;
        for _ in 0..1000 {
            caller.count_request(Instant::now(), &mut quota).unwrap();
        }
        assert_eq!(quota, None);
    }

    #[test]
    fn each_row_counts_as_a_request() {
        let (name, mut tenant) = (samples::name("acme"), samples::tenant(Access::Open));
        tenant.limits = limits(Some(4), None);
        let now = Instant::now();
        tenant.quota.put_in_force(&tenant.limits, now);
        let (limit, tenant) = (tenant.limits.requests.unwrap(), tenant.into());
        let caller = NamedTenant { name: &name, tenant: &tenant };
        let mut quota = None;
        let mut ask = |rows: u64, now: Instant| -> Result<u64, QuotaError> {
            caller.count_request(now, &mut quota)?;
            caller.count_rows(rows, now, &mut quota)?;
            Ok(quota.unwrap().left)
        };
        assert_eq!(ask(5, now), Err(QuotaError::TooManyAtOnce { limit, rows: 5 }));
        assert_eq!(ask(2, now), Ok(1), "a refused request costs one");
        let after = 3 * SECOND / 4;
        assert_eq!(ask(3, now), Err(QuotaError::Requests { limit, after }));
        let after_one = Err(QuotaError::Requests { limit, after: SECOND / 4 });
        assert_eq!(ask(5, now), after_one, "the last request went with the refused rows");
        assert_eq!(ask(3, now + after), Ok(0));
        assert_eq!(ask(1, now + after), after_one);
        assert_eq!(ask(1, now + SECOND), Ok(0));
    }

    #[test]
    fn requests_are_let_through_up_to_the_quota_and_refused_with_the_time_to_wait() {
        let (name, mut tenant) = (samples::name("acme"), samples::tenant(Access::Open));
        tenant.limits = limits(Some(2), None);
        let now = Instant::now();
        tenant.quota.put_in_force(&tenant.limits, now);
        let (limit, tenant) = (tenant.limits.requests.unwrap(), tenant.into());
        let caller = NamedTenant { name: &name, tenant: &tenant };
        let mut quota = None;
        for left in [1, 0] {
            caller.count_request(now, &mut quota).unwrap();
            assert_eq!(quota.unwrap().left, left);
        }
        let refused = caller.count_request(now, &mut quota).unwrap_err();
        assert_eq!(refused, QuotaError::Requests { limit, after: SECOND / 2 });
        assert_eq!(
            (refused.code(), refused.retry_after()),
            (ErrorCode::QuotaExceeded, Some(SECOND / 2))
        );
        assert_eq!(quota, Some(RequestQuota { limit, left: 0, full_after: SECOND }));
        assert_eq!(
            refused.to_string(),
            "the tenant's quota of requests is used up: 2 requests in 1 s, at most 2 at once; the \
             next one can be sent in 1 s"
        );
        caller.count_request(now + SECOND / 2, &mut quota).unwrap();
        assert_eq!(tenant.quota.refused.load(std::sync::atomic::Ordering::Relaxed), 1);
    }

    #[test]
    fn owed_processor_time_refuses_all_requests_and_takes_none_of_their_quota() {
        let (name, mut tenant) = (samples::name("acme"), samples::tenant(Access::Open));
        tenant.limits = limits(Some(1), Some(6));
        let now = Instant::now();
        tenant.quota.put_in_force(&tenant.limits, now);
        tenant.quota.calls.cpu().spend(7_000_000_000, now);
        let tenant = tenant.into();
        let caller = NamedTenant { name: &name, tenant: &tenant };
        let mut quota = None;
        let refused = caller.count_request(now, &mut quota).unwrap_err();
        assert_eq!(refused.retry_after(), Some(10 * SECOND));
        assert!(refused.to_string().contains("6 s in 60 s; the next request"), "{refused}");
        caller.count_request(now + 10 * SECOND, &mut quota).unwrap();
        assert_eq!(quota.unwrap().left, 0);
    }

    #[test]
    fn rows_are_told_with_their_numbers() {
        let refused = QuotaError::Rows(TooManyRows { wanted: 70, max: 64 });
        assert_eq!(
            refused.to_string(),
            "this request would raise the tenant's rows in flight to 70; its quota is 64"
        );
    }
}
