//! Which pipelines have details of their own: a bounded number, those with the most requests.
//!
//! A pipeline gets a place when it is made, as long as one is free. From then on a busy pipeline
//! without a place takes that of a much quieter one, now and then. Its details begin at 0, and
//! those of the quieter one end; so every series only grows while it exists.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use gristmill_core::Name;

use crate::collected::Collected;
use crate::details::{Details, Place};
use crate::family;
use crate::request::{RequestFigures, Target};

/// The shortest time between two looks at who has a place.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// The most places that change hands in one look.
const MOVES_MAX: usize = 16;

/// A pipeline takes the place of another one if it had this many times as many requests since the
/// last look, and this many more.
const TIMES_AS_MANY: u64 = 2;
const MORE: u64 = 10;

/// The places for details.
#[derive(Debug)]
pub struct Places {
    free: Arc<AtomicUsize>,
    /// The details of all that have no place.
    other: Arc<Details>,
    looked: ArcSwapOption<Instant>,
}

impl Places {
    /// At most `max` pipelines and models with details of their own.
    pub fn new(max: usize) -> Self {
        Self {
            free: Arc::new(AtomicUsize::new(max)),
            other: Arc::new(Details::new(None)),
            looked: ArcSwapOption::empty(),
        }
    }

    /// The figures of a tenant's requests to a target: with details of their own if there is a
    /// place for them.
    pub fn figures(&self, tenant: Name, target: Target) -> RequestFigures {
        RequestFigures::new(tenant, target, self.claim())
    }

    /// Details of its own for a new target, if a place is free, else those of all others.
    fn claim(&self) -> Arc<Details> {
        self.place().map_or_else(|| self.other.clone(), |place| Details::new(Some(place)).into())
    }

    fn place(&self) -> Option<Place> {
        let taken = self.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(1));
        taken.ok().map(|_| Place(self.free.clone()))
    }

    /// Let busy targets have the places of quiet ones, if the last look is some time ago. `all`
    /// are the targets that exist.
    pub fn look(&self, all: &[&RequestFigures], now: Instant) {
        let looked = self.looked.load();
        if looked.as_ref().is_some_and(|looked| now < **looked + LOOK_INTERVAL) {
            return;
        }
        self.looked.store(Some(Arc::new(now)));
        let mut holders = Vec::new();
        let mut others = Vec::new();
        for figures in all {
            let count = figures.ended();
            let recent = count.saturating_sub(figures.seen.swap(count, Relaxed));
            let group = if figures.has_place() { &mut holders } else { &mut others };
            group.push((recent, *figures));
        }
        others.sort_unstable_by_key(|(recent, _)| std::cmp::Reverse(*recent));
        holders.sort_unstable_by_key(|(recent, _)| *recent);
        let mut holders = holders.into_iter();
        for (recent, busy) in others.into_iter().take(MOVES_MAX) {
            if recent == 0 {
                return;
            }
            if let Some(place) = self.place() {
                busy.move_to(Details::new(Some(place)).into());
                continue;
            }
            let Some((least, quiet)) = holders.next() else { return };
            // A place that is not used is given away at once.
            if least > 0 && recent < (least * TIMES_AS_MANY).saturating_add(MORE) {
                return;
            }
            // The place is free once the last request has added to the quiet one's details.
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
        let own = all.iter().filter(|figures| figures.has_place()).count();
        collected.add(family::METRICS_PLACES, &["own"], own);
        collected.add(family::METRICS_PLACES, &["other"], all.len() - own);
    }
}

#[cfg(test)]
mod tests {
    use gristmill_core::Receipt;

    use super::*;

    fn figures(name: &str, places: &Places) -> Arc<RequestFigures> {
        let target = Target::Model("m".parse().unwrap());
        Arc::new(places.figures(name.parse().unwrap(), target))
    }

    fn run(figures: &Arc<RequestFigures>, times: usize) {
        for _ in 0..times {
            let mut receipt = Receipt::open(Instant::now());
            receipt.charge_to(figures.clone());
            receipt.answered(0);
        }
    }

    fn own(all: &[&Arc<RequestFigures>]) -> Vec<bool> {
        all.iter().map(|figures| figures.has_place()).collect()
    }

    #[test]
    fn a_busy_target_takes_the_place_of_a_quiet_one() {
        let places = Places::new(2);
        let [a, b, c] = ["a", "b", "c"].map(|name| figures(name, &places));
        assert_eq!(own(&[&a, &b, &c]), [true, true, false]);
        let mut now = Instant::now();
        let mut look = || {
            places.look(&[&a, &b, &c], now);
            now += LOOK_INTERVAL;
            own(&[&a, &b, &c])
        };
        run(&a, 50);
        run(&b, 20);
        run(&c, 40);
        assert_eq!(look(), [true, true, false], "40 are not enough more than 20");
        run(&a, 50);
        run(&c, 40);
        assert_eq!(look(), [true, false, true]);
        run(&a, 100);
        run(&b, 100);
        run(&c, 100);
        assert_eq!(look(), [true, false, true], "nobody is pushed aside by an equal");
        drop(a.clone());
        let mut collected = Collected::default();
        places.collect(&[&a, &b, &c], &mut collected);
        let (_, points) = collected.families().next().unwrap();
        assert_eq!(points[0].value, 2_u64.into());
    }

    #[test]
    fn the_place_of_a_target_that_is_gone_is_free_again() {
        let places = Places::new(1);
        let [a, b] = ["a", "b"].map(|name| figures(name, &places));
        run(&b, 1);
        drop(a);
        places.look(&[&b], Instant::now());
        assert!(b.has_place());
        assert!(!figures("c", &places).has_place());
    }
}
