//! The counters of a lane. Their locks are separate, so that reading them delays no request.
//!
//! Each request and each batch adds to `recent`. A reader takes these figures away in one step,
//! adds them to `earlier`, which only readers lock, and copies the sum.

use gristmill_core::Name;
use parking_lot::{Mutex, MutexGuard};

use crate::statistics::LaneStatistics;

/// The figures of a lane. Its locks are taken after all others, and held only for a short time.
#[derive(Default)]
pub(crate) struct Tally {
    recent: Mutex<LaneStatistics>,
    earlier: Mutex<LaneStatistics>,
}

impl Tally {
    /// The figures since the last reading, to add to.
    pub(crate) fn recent(&self) -> MutexGuard<'_, LaneStatistics> {
        self.recent.lock()
    }

    /// All figures so far.
    pub(crate) fn read(&self) -> LaneStatistics {
        self.collected().clone()
    }

    /// Forget the figures of tenants that are not to be kept. The totals still include them.
    pub(crate) fn retain_tenants(&self, keep: impl Fn(&Name) -> bool) {
        self.collected().tenants.retain(|tenant, _| keep(tenant));
    }

    fn collected(&self) -> MutexGuard<'_, LaneStatistics> {
        let mut earlier = self.earlier.lock();
        let recent = std::mem::take(&mut *self.recent());
        earlier.add(recent);
        earlier
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::statistics::{CountedBatch, CountedRequest, Elements};
    use crate::submission::Answered;
    use crate::times::Times;

    fn count(tally: &Tally, tenants: [&Name; 2]) {
        let (times, answered) =
            (Times { run: Duration::from_millis(2), ..Times::default() }, Answered::default());
        let tenant_rows = [(tenants[0], 2), (tenants[1], 3)];
        let at = SystemTime::now();
        let elements = Elements { real: 7, padding: 3 };
        let batch =
            CountedBatch { tenant_rows: &tenant_rows, times: &times, bisections: 1, elements, at };
        tally.recent().count_batch(&batch);
        for (tenant, answered) in [(tenants[0], Some(&answered)), (tenants[1], None)] {
            let time = Duration::from_millis(5);
            tally.recent().count_request(&CountedRequest { tenant, answered, time });
        }
    }

    /// Reading in between does not change the figures, however often.
    #[test]
    fn reading_changes_no_figure() {
        let [a, b]: [Name; 2] = ["a", "b"].map(|name| name.parse().unwrap());
        let [read_often, read_once] = [Tally::default(), Tally::default()];
        for _ in 0..20 {
            count(&read_often, [&a, &b]);
            read_often.read();
            count(&read_once, [&a, &b]);
        }
        let texts = [&read_often, &read_once].map(|tally| {
            let mut figures = tally.read();
            let tenants = figures.tenants.values_mut();
            for counters in tenants.chain([&mut figures.total]) {
                assert!(counters.last_run.take().is_some());
            }
            format!("{figures:?}")
        });
        assert_eq!(texts[0], texts[1]);
        let figures = read_often.read();
        assert_eq!((figures.total.rows, figures.mixed_batches, figures.bisections), (100, 20, 20));
        assert_eq!(figures.elements, Elements { real: 140, padding: 60 });
        assert_eq!((figures.tenants[&a].success, figures.tenants[&b].fail), (20, 20));
        assert_eq!(figures.total.batches[&5].times.run, Duration::from_millis(40));
        assert_eq!(figures.recent_mixed.len(), 8);
    }

    #[test]
    fn deleted_tenants_are_forgotten_and_the_totals_stay() {
        let [a, b]: [Name; 2] = ["a", "b"].map(|name| name.parse().unwrap());
        let tally = Tally::default();
        count(&tally, [&a, &b]);
        tally.retain_tenants(|tenant| tenant == &a);
        let figures = tally.read();
        assert_eq!(figures.tenants.keys().collect::<Vec<_>>(), [&a]);
        assert_eq!((figures.total.success, figures.total.fail), (1, 1));
    }
}
