use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use gristmill_core::{ModelError, Tensor};

use super::*;

/// Counts the orders that it gets.
#[derive(Default)]
struct Told {
    interrupted: AtomicUsize,
    rearmed: AtomicUsize,
}

impl Interrupt for Told {
    fn interrupt(&self) {
        self.interrupted.fetch_add(1, Ordering::Relaxed);
    }

    fn rearm(&self) {
        self.rearmed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Told {
    fn counts(&self) -> (usize, usize) {
        (self.interrupted.load(Ordering::Relaxed), self.rearmed.load(Ordering::Relaxed))
    }
}

struct Idle(Arc<Told>);

impl Model for Idle {
    fn run(&mut self, _: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        Ok(Vec::new())
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        Some(self.0.clone())
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn begin(running: &mut RunningBatches, give_up_at: Instant) -> (u64, Arc<Told>) {
    let stop_order = Arc::new(Told::default());
    let instance = Instance::new(Box::new(Idle(stop_order.clone())));
    let begun = Begun { until: give_up_at, give_up_at, led: false, instance: &instance };
    (running.begin(begun), stop_order)
}

#[test]
fn a_run_is_told_to_end_once_and_only_when_it_is_due() {
    let (mut running, now) = (RunningBatches::default(), Instant::now());
    let (first, told_first) = begin(&mut running, now + SECOND);
    let (second, told_second) = begin(&mut running, now + 3 * SECOND);
    assert_eq!((running.tell_overdue(now), running.tell_overdue(now + SECOND)), (0, 1));
    assert_eq!(running.tell_overdue(now + 2 * SECOND), 0);
    assert_eq!((told_first.counts(), told_second.counts()), ((1, 0), (0, 0)));
    assert!(running.end(first) && running.end(second));
    assert_eq!(running.len(), 0);
    assert_eq!((told_first.counts(), told_second.counts()), ((1, 1), (0, 0)));
}

#[test]
fn a_run_that_does_not_heed_it_is_lost_until_it_ends() {
    let (mut running, now) = (RunningBatches::default(), Instant::now());
    let (first, stop_order) = begin(&mut running, now);
    let (second, _) = begin(&mut running, now + SECOND);
    running.tell_overdue(now);
    assert!(running.lose(now - SECOND).is_none(), "it was told later");
    assert!(running.lose(now).is_some() && running.lose(now).is_none());
    assert!(running.end(second) && running.is_empty() && running.len() == 1);
    assert!(!running.end(first), "its instance is not used again");
    assert_eq!(running.len(), 0);
    assert_eq!(stop_order.counts(), (1, 0));
}

#[test]
fn the_first_end_is_that_of_the_runs_still_there() {
    let (mut running, now) = (RunningBatches::default(), Instant::now());
    let (first, _) = begin(&mut running, now + SECOND);
    begin(&mut running, now + 2 * SECOND);
    assert_eq!(running.first_end(), Some(now + SECOND));
    running.end(first);
    assert_eq!(running.first_end(), Some(now + 2 * SECOND));
}
