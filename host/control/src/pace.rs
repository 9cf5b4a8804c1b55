//! How often a token whose reach is a few tenants makes releases.
//!
//! Each release that is made pushes an older one out of those that are kept, whoever made it, so
//! without a bound one tenant could remove the history of all. Knows no clock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use gristmill_core::{Name, Rate, RateLimit};
use parking_lot::Mutex;

/// The releases that one token makes at once, and in an hour.
const BURST: u64 = 100;
const PER_HOUR: u64 = 60;

/// A release is counted as the milliseconds after which the token may make one more.
const RELEASE: u64 = 3_600_000 / PER_HOUR;
const LIMIT: RateLimit =
    RateLimit { tokens: 1000, every: Duration::from_secs(1), burst: BURST * RELEASE };

/// The paces of all tokens that made releases of late.
#[derive(Default)]
pub(crate) struct Pace(Mutex<HashMap<Name, Token>>);

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
    /// Count a release of this token.
    ///
    /// # Errors
    /// [`TooManyReleases`]
    pub(crate) fn count(&self, name: &Name, now: Instant) -> Result<(), TooManyReleases> {
        let mut tokens = self.0.lock();
        if !tokens.contains_key(name) {
            tokens.retain(|_, token| now.duration_since(token.last) < LIMIT.window());
        }
        let new = || {
            let rate = Rate::default();
            rate.set(Some(LIMIT), now);
            Token { rate, last: now }
        };
        let token = tokens.entry(name.clone()).or_insert_with(new);
        match token.rate.take(RELEASE, now) {
            Ok(_) => {
                token.last = now;
                Ok(())
            }
            Err(empty) => Err(TooManyReleases { token: name.clone(), after: empty.after }),
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
        let (ci, other, began) = (name("ci"), name("other"), Instant::now());
        for _ in 0..BURST {
            pace.count(&ci, began).unwrap();
        }
        let minute = Duration::from_secs(60);
        for after in [0, 1, 2].map(|minutes| minutes * minute) {
            let refused = pace.count(&ci, began + after).unwrap_err();
            assert!(refused.after.abs_diff(minute) < Duration::from_millis(1), "{refused:?}");
            assert!(refused.to_string().contains("token \"ci\""), "{refused}");
            pace.count(&other, began + after).unwrap();
            pace.count(&ci, began + after + minute + Duration::from_millis(1)).unwrap();
        }
        pace.count(&name("new"), began + 4 * minute + LIMIT.window()).unwrap();
        assert_eq!(pace.0.lock().len(), 1, "those that are full again are forgotten");
    }
}
