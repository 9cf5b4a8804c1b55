use std::sync::Arc;
use std::thread;

use proptest::prelude::*;

use super::*;

fn per_second(tokens: u64, burst: u64) -> Option<RateLimit> {
    Some(RateLimit { tokens, every: Duration::from_secs(1), burst })
}

fn limited(limit: Option<RateLimit>) -> (Rate, Instant) {
    let rate = Rate::default();
    let begun = rate.origin + Duration::from_secs(5);
    rate.set(limit, begun);
    (rate, begun)
}

/// How many single tokens can be taken at `now`.
fn takes(rate: &Rate, now: Instant) -> usize {
    (0..10_000).take_while(|_| rate.take(1, now).is_ok()).count()
}

#[test]
fn without_a_limit_nothing_is_counted() {
    let rate = Rate::default();
    let now = Instant::now();
    assert_eq!(rate.take(u64::MAX, now), Ok(None));
    rate.spend(u64::MAX, now);
    assert_eq!(rate.check(now), Ok(()));
    rate.set(per_second(1, 3), now);
    assert_eq!(takes(&rate, now), 3);
    rate.set(None, now);
    assert!(!rate.is_limited());
    assert_eq!(rate.take(1, now), Ok(None));
}

#[test]
fn a_burst_is_there_at_once_and_refills_at_the_rate() {
    let (rate, begun) = limited(per_second(10, 20));
    assert_eq!(rate.take(1, begun), Ok(Some(left(19, 100))));
    assert_eq!(takes(&rate, begun), 19);
    let empty = Exhausted { after: millis(100), full_after: millis(2000) };
    assert_eq!(rate.take(1, begun), Err(empty));
    assert_eq!(takes(&rate, begun + millis(99)), 0);
    assert_eq!(takes(&rate, begun + millis(100)), 1);
    assert_eq!(takes(&rate, begun + millis(650)), 5);
    // It never holds more than the burst.
    assert_eq!(takes(&rate, begun + Duration::from_secs(3600)), 20);
    // A clock that seems to go back gives nothing.
    assert_eq!(takes(&rate, begun), 0);
}

#[test]
fn a_debt_is_paid_before_anything_more_is_let_through() {
    // Two seconds of CPU time in each minute, in nanoseconds.
    let second = 1_000_000_000;
    let minute = RateLimit { tokens: 2 * second, every: secs(60), burst: 2 * second };
    let (rate, begun) = limited(Some(minute));
    rate.spend(2 * second, begun);
    assert_eq!(rate.check(begun), Ok(()), "all of it is used, and nothing owed");
    rate.spend(3 * second, begun);
    assert_eq!(rate.check(begun), Err(Exhausted { after: secs(90), full_after: secs(150) }));
    assert_eq!(rate.check(begun + secs(89)).map_err(|empty| empty.after), Err(secs(1)));
    assert_eq!(rate.check(begun + secs(90)), Ok(()));
}

#[test]
fn a_changed_limit_keeps_the_amount_that_was_taken() {
    for (limit, takes_now, takes_later) in [
        // 150 of 200 were taken, so 50 are left of 200, and 850 of 1000.
        (per_second(10, 200), 50, 10),
        (per_second(1000, 1000), 850, 1000),
        // More than its burst was taken already.
        (per_second(100, 100), 0, 50),
        (per_second(1, 1), 0, 0),
    ] {
        let (rate, begun) = limited(per_second(100, 200));
        rate.take(150, begun).unwrap();
        rate.set(limit, begun);
        assert_eq!(takes(&rate, begun), takes_now, "{limit:?}");
        assert_eq!(takes(&rate, begun + secs(1)), takes_later, "{limit:?}");
    }
    let (rate, begun) = limited(per_second(100, 200));
    rate.take(150, begun).unwrap();
    rate.set(per_second(100, 200), begun + secs(1));
    assert_eq!(takes(&rate, begun + secs(1)), 150);
}

#[test]
fn threads_together_take_no_more_than_there_is() {
    let (rate, begun) = limited(per_second(1, 1000));
    let rate = Arc::new(rate);
    let taking = || {
        let rate = rate.clone();
        thread::spawn(move || takes(&rate, begun))
    };
    let taken: Vec<_> = (0..4).map(|_| taking()).collect();
    assert_eq!(taken.into_iter().map(|taken| taken.join().unwrap()).sum::<usize>(), 1000);
}

proptest! {
    #[test]
    fn no_time_sees_more_than_the_burst_and_what_refilled(
        tokens in 1_u64..1_000_000,
        burst in 1_u64..2000,
        steps in prop::collection::vec((0_u64..3_000_000_000, 1_u64..50), 1..60),
    ) {
        let (rate, begun) = limited(per_second(tokens, burst));
        let (mut passed, mut taken) = (0, 0);
        for (wait, wanted) in steps {
            passed += wait;
            let now = begun + Duration::from_nanos(passed);
            match rate.take(wanted, now) {
                Ok(left) => {
                    taken += wanted;
                    prop_assert!(left.unwrap().tokens <= burst - wanted);
                }
                Err(empty) if wanted <= burst => {
                    prop_assert!(rate.take(wanted, now + empty.after).is_ok());
                    passed += empty.after.as_nanos() as u64;
                    taken += wanted;
                }
                Err(_) => {}
            }
            let refilled = u128::from(passed) * u128::from(tokens) / 1_000_000_000;
            // One token for fractions of a nanosecond.
            prop_assert!(u128::from(taken) <= u128::from(burst) + refilled + 1);
        }
    }
}

fn left(tokens: u64, full_after_ms: u64) -> Remaining {
    Remaining { tokens, full_after: millis(full_after_ms) }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
