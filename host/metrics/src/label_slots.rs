//! Which pipelines have details of their own: a bounded number, those with the most requests.
//! Each holds a slot, because its details are metrics with its own labels.
//!
//! A pipeline gets a slot when it is made, as long as one is free. From then on a busy pipeline
//! without a slot takes that of a much quieter one, now and then. Its details begin at 0, and
//! those of the quieter one end; so every series only grows while it exists.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use gristmill_core::Name;

use crate::collected::Collected;
use crate::details::{Details, LabelSlot};
use crate::family;
use crate::request::{RequestFigures, RequestTarget};

/// Minimum time between two reassignments.
const REASSIGN_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum slots that change hands in one reassignment.
const MOVES_MAX: usize = 16;

/// A pipeline takes the slot of another one if it had this many times as many requests since
/// the last reassignment, and this many more.
const TIMES_AS_MANY: u64 = 2;
const MORE: u64 = 10;

/// The slots for details, of a bounded number.
#[derive(Debug)]
pub struct LabelSlots {
    free: Arc<AtomicUsize>,
    /// The details of all that have no slot.
    other: Arc<Details>,
    reassigned: ArcSwapOption<Instant>,
}

impl LabelSlots {
    /// At most `max` pipelines and models with details of their own.
    pub fn new(max: usize) -> Self {
        Self {
            free: Arc::new(AtomicUsize::new(max)),
            other: Arc::new(Details::new(None)),
            reassigned: ArcSwapOption::empty(),
        }
    }

    /// The figures of a tenant's requests to a target: with details of their own if there is a
    /// slot for them.
    pub fn figures(&self, tenant: Name, target: RequestTarget) -> RequestFigures {
        RequestFigures::new(tenant, target, self.claim())
    }

    /// Details of its own for a new target, if a slot is free, else those of all others.
    fn claim(&self) -> Arc<Details> {
        self.slot().map_or_else(|| self.other.clone(), |slot| Details::new(Some(slot)).into())
    }

    fn slot(&self) -> Option<LabelSlot> {
        let taken = self.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(1));
        taken.ok().map(|_| LabelSlot(self.free.clone()))
    }

    /// Let busy targets have the slots of quiet ones, if the last reassignment is some time
    /// ago. `all` are the targets that exist.
    pub fn reassign(&self, all: &[&RequestFigures], now: Instant) {
        let reassigned = self.reassigned.load();
        if reassigned.as_ref().is_some_and(|reassigned| now < **reassigned + REASSIGN_INTERVAL) {
            return;
        }
        self.reassigned.store(Some(Arc::new(now)));
        let mut holders = Vec::new();
        let mut others = Vec::new();
        for figures in all {
            let count = figures.ended();
            let recent = count.saturating_sub(figures.seen.swap(count, Relaxed));
            let group = if figures.has_slot() { &mut holders } else { &mut others };
            group.push((recent, *figures));
        }
        others.sort_unstable_by_key(|(recent, _)| std::cmp::Reverse(*recent));
        holders.sort_unstable_by_key(|(recent, _)| *recent);
        let mut holders = holders.into_iter();
        for (recent, busy) in others.into_iter().take(MOVES_MAX) {
            if recent == 0 {
                return;
            }
            if let Some(slot) = self.slot() {
                busy.move_to(Details::new(Some(slot)).into());
                continue;
            }
            let Some((least, quiet)) = holders.next() else { return };
            // A slot that is not used is given away at once.
            if least > 0 && recent < (least * TIMES_AS_MANY).saturating_add(MORE) {
                return;
            }
            // The slot is free once the last request has added to the quiet one's details.
            quiet.move_to(self.other.clone());
            busy.move_to(self.claim());
        }
    }

    /// Add the values of the targets without details of their own.
    pub fn collect_other(&self, collected: &mut Collected) {
        self.other.collect_other(collected);
    }

    /// Add how many of `all` have details of their own.
    pub fn collect(&self, all: &[&RequestFigures], collected: &mut Collected) {
        let with_slots = all.iter().filter(|figures| figures.has_slot()).count();
        collected.add(family::METRICS_PLACES, &["own"], with_slots);
        collected.add(family::METRICS_PLACES, &["other"], all.len() - with_slots);
    }
}

#[cfg(test)]
mod tests {
    use gristmill_core::Receipt;

    use super::*;

    fn figures(name: &str, slots: &LabelSlots) -> Arc<RequestFigures> {
        let target = RequestTarget::Model("m".parse().unwrap());
        Arc::new(slots.figures(name.parse().unwrap(), target))
    }

    fn run(figures: &Arc<RequestFigures>, times: usize) {
        for _ in 0..times {
            let mut receipt = Receipt::open(Instant::now());
            receipt.charge_to(figures.clone());
            receipt.answered(0);
        }
    }

    fn have_slots(all: &[&Arc<RequestFigures>]) -> Vec<bool> {
        all.iter().map(|figures| figures.has_slot()).collect()
    }

    #[test]
    fn a_busy_target_takes_the_place_of_a_quiet_one() {
        let slots = LabelSlots::new(2);
        let [a, b, c] = ["a", "b", "c"].map(|name| figures(name, &slots));
        assert_eq!(have_slots(&[&a, &b, &c]), [true, true, false]);
        let mut now = Instant::now();
        let mut reassign = || {
            slots.reassign(&[&a, &b, &c], now);
            now += REASSIGN_INTERVAL;
            have_slots(&[&a, &b, &c])
        };
        run(&a, 50);
        run(&b, 20);
        run(&c, 40);
        assert_eq!(reassign(), [true, true, false], "40 are not enough more than 20");
        run(&a, 50);
        run(&c, 40);
        assert_eq!(reassign(), [true, false, true]);
        run(&a, 100);
        run(&b, 100);
        run(&c, 100);
        assert_eq!(reassign(), [true, false, true], "nobody is pushed aside by an equal");
        drop(a.clone());
        let mut collected = Collected::default();
        slots.collect(&[&a, &b, &c], &mut collected);
        let (_, points) = collected.families().next().unwrap();
        assert_eq!(points[0].value, 2_u64.into());
    }

    #[test]
    fn the_place_of_a_target_that_is_gone_is_free_again() {
        let slots = LabelSlots::new(1);
        let [a, b] = ["a", "b"].map(|name| figures(name, &slots));
        run(&b, 1);
        drop(a);
        slots.reassign(&[&b], Instant::now());
        assert!(b.has_slot());
        assert!(!figures("c", &slots).has_slot());
    }
}
