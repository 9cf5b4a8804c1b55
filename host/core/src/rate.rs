//! A rate with a burst: a bucket that refills steadily, and from which each use takes.
//!
//! It is the generic cell rate algorithm: one number, the time at which the bucket will be full
//! again, says all. So a use is one atomic exchange, without a lock.
//!
//! Invariants:
//! - at no time has more been taken than the burst and what has refilled since;
//! - a change of the limit keeps what was taken: not its share of the bucket, but its amount.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The bits after the point of [`Rate::refill`].
const FRACTION_BITS: u32 = 32;

/// A limit on a rate: at most `tokens` in each `every`, on average, and at most `burst` at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// How many tokens come in each period; at least 1, and at least one in 4 seconds.
    pub tokens: u64,
    /// The period.
    pub every: Duration,
    /// Maximum tokens that there are at a time; at least 1.
    pub burst: u64,
}

/// A bucket of tokens. By default it has no limit.
#[derive(Debug)]
pub struct Rate {
    /// Times are kept as nanoseconds since then.
    origin: Instant,
    /// The nanoseconds in which one token refills, with [`FRACTION_BITS`] after the point; 0
    /// without a limit.
    refill: AtomicU64,
    /// The nanoseconds in which the whole bucket refills.
    window: AtomicU64,
    /// When the bucket is full again, if nothing more is taken.
    full_at: AtomicU64,
}

/// What a bucket has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// Whole tokens.
    pub tokens: u64,
    /// After this time it is full again.
    pub full_after: Duration,
}

/// A bucket does not have enough. It will have after `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// The time until then.
    pub after: Duration,
    /// After this time it is full again.
    pub full_after: Duration,
}

impl Default for Rate {
    fn default() -> Self {
        let origin = Instant::now();
        let [refill, window, full_at] = [0; 3].map(AtomicU64::new);
        Self { origin, refill, window, full_at }
    }
}

impl Rate {
    /// Whether there is a limit.
    pub fn is_limited(&self) -> bool {
        self.refill.load(Ordering::Relaxed) > 0
    }

    /// Replace the limit. What was taken under the limit before stays taken. Two callers must not
    /// do this at the same time.
    pub fn set(&self, limit: Option<RateLimit>, now: Instant) {
        let (refill, window) = limit.map_or((0, 0), RateLimit::scaled);
        let before = self.refill.load(Ordering::Relaxed);
        let is_same = self.window.load(Ordering::Relaxed) == window || refill == 0;
        if before == refill && is_same {
            return;
        }
        let now = self.nanos(now);
        let amount_kept = |full_at: u64| {
            let left = full_at.saturating_sub(now);
            let taken = if before == 0 { 0 } else { product_of(left, refill, before) };
            Some(now.saturating_add(taken))
        };
        let _ = self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, amount_kept);
        // A reader that sees a refill must see its window, too.
        if refill > 0 {
            self.window.store(window, Ordering::Relaxed);
        }
        self.refill.store(refill, Ordering::Release);
    }

    /// Take so many tokens, if there are as many. None if there is no limit.
    ///
    /// # Errors
    /// [`Exhausted`]. Nothing is taken then.
    pub fn take(&self, tokens: u64, now: Instant) -> Result<Option<Remaining>, Exhausted> {
        let refill = self.refill.load(Ordering::Acquire);
        if refill == 0 {
            return Ok(None);
        }
        let (now, window) = (self.nanos(now), self.window.load(Ordering::Relaxed));
        let taken_until = |full_at: u64| full_at.max(now).saturating_add(scaled(tokens, refill));
        let limit = now.saturating_add(window);
        let within = |full_at| Some(taken_until(full_at)).filter(|full_at| *full_at <= limit);
        match self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within) {
            Ok(before) => {
                let full_at = taken_until(before);
                let tokens = product_of(limit - full_at, 1 << FRACTION_BITS, refill);
                Ok(Some(Remaining { tokens, full_after: Duration::from_nanos(full_at - now) }))
            }
            Err(full_at) => Err(Exhausted {
                after: Duration::from_nanos(taken_until(full_at) - limit),
                full_after: Duration::from_nanos(full_at.saturating_sub(now)),
            }),
        }
    }

    /// Take tokens that were used already, also more than there are. The bucket is then in debt.
    pub fn spend(&self, tokens: u64, now: Instant) {
        let refill = self.refill.load(Ordering::Relaxed);
        if refill == 0 {
            return;
        }
        let now = self.nanos(now);
        let spent = |full_at: u64| Some(full_at.max(now).saturating_add(scaled(tokens, refill)));
        let _ = self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent);
    }

    /// Give back tokens that were taken and not used. The bucket never has more than its burst.
    pub fn give_back(&self, tokens: u64) {
        let refill = self.refill.load(Ordering::Relaxed);
        let refilled = |full_at: u64| Some(full_at.saturating_sub(scaled(tokens, refill)));
        let _ = self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, refilled);
    }

    /// Check that the bucket is not in debt.
    ///
    /// # Errors
    /// [`Exhausted`]
    pub fn check(&self, now: Instant) -> Result<(), Exhausted> {
        if !self.is_limited() {
            return Ok(());
        }
        let full_after = self.full_at.load(Ordering::Relaxed).saturating_sub(self.nanos(now));
        match full_after.saturating_sub(self.window.load(Ordering::Relaxed)) {
            0 => Ok(()),
            after => Err(Exhausted {
                after: Duration::from_nanos(after),
                full_after: Duration::from_nanos(full_after),
            }),
        }
    }

    fn nanos(&self, now: Instant) -> u64 {
        let passed = now.saturating_duration_since(self.origin);
        passed.as_nanos().try_into().unwrap_or(u64::MAX)
    }
}

impl RateLimit {
    /// The time in which the whole burst refills.
    pub fn window(&self) -> Duration {
        let (_, window) = self.scaled();
        Duration::from_nanos(window)
    }

    /// The time for one token with its fraction, and the time for the burst.
    fn scaled(self) -> (u64, u64) {
        let every = u64::try_from(self.every.as_nanos()).unwrap_or(u64::MAX);
        let refill = product_of(every, 1 << FRACTION_BITS, self.tokens.max(1)).max(1);
        (refill, scaled(self.burst.max(1), refill))
    }
}

/// The nanoseconds in which so many tokens refill.
fn scaled(tokens: u64, refill: u64) -> u64 {
    product_of(tokens, refill, 1 << FRACTION_BITS)
}

/// `value * factor / divisor`, or the greatest number if it is greater.
fn product_of(value: u64, factor: u64, divisor: u64) -> u64 {
    let product = u128::from(value) * u128::from(factor) / u128::from(divisor);
    product.try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
