//! The tasks of a server that shares its store: one looks for new releases and serves them, the
//! other renews the server's lease.
//!
//! A failure changes nothing that serves. The next poll is later after each one, and at another
//! moment on each server, so that a store that comes back is not met by all of them at once.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use gristmill_store::StoreError;
use tokio::time::{sleep, timeout};

use crate::error::ControlError;
use crate::releases::Releases;
use crate::replicas::{RENEWED, Replicas};

/// The longest time between two polls for new releases while they fail.
const POLL_MAX: Duration = Duration::from_secs(5);

/// The time that one poll may take.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);

/// The time after which the lease is compared with what serves.
const LEASE_PAUSE: Duration = Duration::from_millis(250);

/// The polls that fail before a release is served without files that cannot be fetched.
const PATIENCE: u32 = 3;

/// The first and the longest time between two attempts to load what could not be read.
const REPAIR_MIN: Duration = Duration::from_secs(5);
const REPAIR_MAX: Duration = Duration::from_secs(300);

/// The time between two records of the state on the local disk.
const NOTED: Duration = Duration::from_secs(10);

/// The time between two polls for leases of servers that are gone.
const SWEPT: Duration = Duration::from_secs(60);

/// What the task did last, and when.
struct Follower {
    replicas: Arc<Replicas>,
    repair_at: Instant,
    repair_after: Duration,
    noted: Option<(Instant, u64)>,
    swept: Instant,
}

/// Follow the log until `releases` is dropped.
pub(crate) async fn follow(releases: Weak<Releases>, replicas: Arc<Replicas>) {
    let poll = replicas.following.poll;
    let now = Instant::now();
    let mut follower =
        Follower { replicas, repair_at: now, repair_after: REPAIR_MIN, noted: None, swept: now };
    let mut failures = 0;
    while let Some(releases) = releases.upgrade() {
        let polled = follower.poll(&releases, failures < PATIENCE).await;
        failures = if polled.is_err() { failures + 1 } else { 0 };
        // A single failure says little.
        if failures != 1 {
            follower.replicas.note(&polled);
        }
        if polled.is_ok() {
            follower.replicas.note_current();
            follower.keep_up(&releases).await;
        }
        drop(releases);
        sleep(pause(poll, failures, RandomState::new().hash_one(()))).await;
    }
}

/// Say in the lease what serves, whenever that changes and now and then, until `releases` is
/// dropped. Not in [`follow`], where one release may take minutes to load.
pub(crate) async fn keep_lease(releases: Weak<Releases>, replicas: Arc<Replicas>) {
    // When the lease was put, with the release and the number of faults.
    let mut renewed: Option<(Instant, u64, usize)> = None;
    while let Some(releases) = releases.upgrade() {
        let serving = releases.publisher.serving();
        drop(releases);
        let (release, faults) = (serving.snapshot.release, serving.faulty.len());
        let is_said = renewed.is_some_and(|(at, release_in_lease, faulty)| {
            (release_in_lease, faulty) == (release, faults) && at.elapsed() < RENEWED
        });
        // A call that failed is made again after the pause. `follow` reports the reason.
        if !is_said && let Ok(Ok(())) = timeout(POLL_TIMEOUT, replicas.renew(&serving)).await {
            renewed = Some((Instant::now(), release, faults));
        }
        drop(serving);
        sleep(LEASE_PAUSE).await;
    }
}

/// The time to the next poll: three quarters of it to all of it, as `random` says.
fn pause(poll: Duration, failures: u32, random: u64) -> Duration {
    let longest = poll.max(POLL_MAX);
    let whole = poll.saturating_mul(1 << failures.min(16)).min(longest);
    whole.mul_f64(0.75 + 0.25 * (random as f64 / u64::MAX as f64))
}

impl Follower {
    /// Poll for new releases, and serve them.
    async fn poll(&self, releases: &Arc<Releases>, is_patient: bool) -> Result<(), ControlError> {
        let is_behind = timeout(POLL_TIMEOUT, releases.is_behind()).await;
        let late = || StoreError::unreachable("it did not answer in time");
        if is_behind.map_err(|_| late())?? {
            releases.follow(is_patient).await?;
        }
        Ok(())
    }

    /// What is done now and then while the store can be reached.
    async fn keep_up(&mut self, releases: &Arc<Releases>) {
        if self.repair_at <= Instant::now() {
            self.repair_after = match releases.repair().await {
                true => (self.repair_after * 2).min(REPAIR_MAX),
                false => REPAIR_MIN,
            };
            self.repair_at = Instant::now() + self.repair_after;
        }
        if self.swept.elapsed() > SWEPT {
            self.swept = Instant::now();
            if let Err(error) = self.replicas.forget_old().await {
                tracing::debug!(?error, "cannot remove old leases");
            }
        }
        let release = releases.publisher.serving().snapshot.release;
        let is_due = self.noted.is_none_or(|(at, noted)| noted != release && at.elapsed() > NOTED);
        if is_due {
            self.noted = Some((Instant::now(), release));
            if let Err(error) = releases.note_state().await {
                tracing::warn!(?error, "the state for a start without the store is not recorded");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_make_the_pauses_longer_up_to_a_bound() {
        let second = Duration::from_secs(1);
        let pause = |failures| pause(second, failures, u64::MAX).as_secs();
        assert_eq!([0, 1, 2, 3, 99].map(pause), [1, 2, 4, 5, 5]);
        let slow = super::pause(Duration::from_secs(60), 3, u64::MAX);
        assert_eq!(slow.as_secs(), 60, "a slow poll is not made faster");
        let shortest = super::pause(second, 0, 0);
        assert_eq!(shortest, Duration::from_millis(750));
    }
}
