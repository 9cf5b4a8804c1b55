//! How often a token whose scope is a few tenants makes releases.
//!
//! Each new release pushes an older one, of any author, out of those that are kept. A bound on the
//! pace leaves operators hours to see that a token is misused. Knows no clock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use gristmill_core::{Name, Rate, RateLimit};
use parking_lot::Mutex;

/// The releases that one token makes at once, and in an hour.
const BURST: u64 = 100;
const PER_HOUR: u64 = 60;

/// A release counts as the milliseconds after which the token may make one more.
const RELEASE: u64 = 3_600_000 / PER_HOUR;
const LIMIT: RateLimit =
    RateLimit { tokens: 1000, every: Duration::from_secs(1), burst: (BURST - 1) * RELEASE };

/// The paces of all tokens that made releases of late, by name and by the release that brought the
/// secret.
#[derive(Default)]
pub(crate) struct Pace(Mutex<HashMap<(Name, u64), Token>>);

/// A token has made too many releases of late.
#[derive(Debug, thiserror::Error)]
#[error(
    "the token {:?} has made {} releases, and may make {} more in an hour: try again later, or \
     make many changes in one release",
    .token.as_str(), BURST, PER_HOUR
)]
pub struct TooManyReleases {
    /// Its name.
    pub token: Name,
    /// After this time it may make the next one.
    pub after: Duration,
}

struct Token {
    rate: Rate,
    last: Instant,
}

impl Pace {
    /// Check that the token of this name, whose secret this release brought, may make a release.
    ///
    /// # Errors
    /// [`TooManyReleases`]
    pub(crate) fn check(
        &self,
        name: &Name,
        version: u64,
        now: Instant,
    ) -> Result<(), TooManyReleases> {
        let tokens = self.0.lock();
        match tokens.get(&(name.clone(), version)).map(|pace| pace.rate.check(now)) {
            Some(Err(empty)) => Err(TooManyReleases { token: name.clone(), after: empty.after }),
            _ => Ok(()),
        }
    }

    /// Count a release that this token is to make.
    pub(crate) fn count(&self, name: &Name, version: u64, now: Instant) {
        let mut tokens = self.0.lock();
        let full_after = LIMIT.window() + Duration::from_millis(RELEASE);
        tokens.retain(|_, token| now.duration_since(token.last) < full_after);
        let new = || {
            let rate = Rate::default();
            rate.set(Some(LIMIT), now);
            Token { rate, last: now }
        };
        let token = tokens.entry((name.clone(), version)).or_insert_with(new);
        token.rate.spend(RELEASE, now);
        token.last = now;
    }

    /// Take back a release that was counted and not made.
    pub(crate) fn take_back(&self, name: &Name, version: u64) {
        if let Some(token) = self.0.lock().get(&(name.clone(), version)) {
            token.rate.give_back(RELEASE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    #[test]
    fn a_token_makes_a_burst_of_releases_and_then_one_a_minute() {
        let pace = Pace::default();
        let (ci, began) = (name("ci"), Instant::now());
        for _ in 0..BURST {
            pace.check(&ci, 1, began).unwrap();
            pace.count(&ci, 1, began);
        }
        let minute = Duration::from_secs(60);
        for after in [0, 1, 2].map(|minutes| minutes * minute) {
            let refused = pace.check(&ci, 1, began + after).unwrap_err();
            assert!(refused.after.abs_diff(minute) < Duration::from_millis(1), "{refused:?}");
            assert!(refused.to_string().contains("token \"ci\""), "{refused}");
            // Others, also one that had the same name.
            pace.check(&name("other"), 1, began + after).unwrap();
            pace.check(&ci, 2, began + after).unwrap();
            let later = began + after + minute + Duration::from_millis(1);
            for _ in 0..2 {
                pace.check(&ci, 1, later).unwrap();
                pace.count(&ci, 1, later);
                pace.check(&ci, 1, later).unwrap_err();
                pace.take_back(&ci, 1);
            }
            pace.count(&ci, 1, later);
        }
        pace.count(&name("new"), 1, began + 5 * minute + LIMIT.window());
        assert_eq!(pace.0.lock().len(), 1, "those that are full again are forgotten");
    }
}
