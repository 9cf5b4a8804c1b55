//! Bounds how many new keys the holder of a tenant's own token tries.
//!
//! The answer to a key tells whether somebody else has it as a key or a token, also in a dry run. A
//! list of changes can bring a thousand keys, so guesses are counted by key and not by call. A key
//! that came before counts once, so that a release can be tried and then made. Knows no clock.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use gristmill_core::{KeyHash, Name};

/// The new keys that may come with one token within [`WINDOW`].
pub(crate) const TRIES_MAX: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);

/// The keys that came of late, by token.
#[derive(Default)]
pub(crate) struct Tries(HashMap<Name, Window>);

struct Window {
    began: Instant,
    keys: HashSet<KeyHash>,
}

impl Tries {
    /// Count keys that come with `token`.
    ///
    /// # Errors
    /// They are too many together: none counts. Returns the time after which more may come.
    pub(crate) fn count(
        &mut self,
        token: &Name,
        keys: HashSet<KeyHash>,
        now: Instant,
    ) -> Result<(), Duration> {
        self.0.retain(|_, window| now.duration_since(window.began) < WINDOW);
        let new = || Window { began: now, keys: HashSet::new() };
        let window = self.0.entry(token.clone()).or_insert_with(new);
        if window.keys.union(&keys).count() > TRIES_MAX {
            return Err(WINDOW - now.duration_since(window.began));
        }
        window.keys.extend(keys);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use gristmill_core::Digest;

    use super::*;

    fn keys(numbers: std::ops::Range<u8>) -> HashSet<KeyHash> {
        numbers.map(|number| KeyHash::Plain(Digest::from_bytes([number; 32]))).collect()
    }

    #[test]
    fn a_token_brings_some_new_keys_in_a_minute_and_the_same_ones_again() {
        let (mut tries, begun) = (Tries::default(), Instant::now());
        let [ci, other]: [Name; 2] = ["ci", "other"].map(|name| name.parse().unwrap());
        let at = |seconds| begun + Duration::from_secs(seconds);
        tries.count(&ci, keys(0..10), begun).unwrap();
        tries.count(&ci, keys(0..10), at(1)).unwrap();
        assert_eq!(tries.count(&ci, keys(9..11), at(2)), Err(Duration::from_secs(58)));
        tries.count(&other, keys(9..11), at(2)).unwrap();
        tries.count(&ci, keys(9..11), at(60)).unwrap();
        assert!(tries.count(&other, keys(30..41), at(60)).is_err(), "at once, too");
        tries.count(&other, keys(0..1), at(200)).unwrap();
        assert_eq!(tries.0.len(), 1, "tokens that bring none are forgotten");
    }
}
