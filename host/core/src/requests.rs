//! The requests that are under way, for operators: each has a slot that says what the request is
//! and which stage it has reached.
//!
//! Invariant: a request waits for another thread here only if that thread takes or gives back a
//! slot of the same list, or reads this very request, in that moment. Slots are made as they are
//! needed and live as long as the process. Each goes back to the list that it came from, so a list
//! has as many as it had requests at the same time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::Instant;

use parking_lot::Mutex;

use crate::named::{Named, SinkNames};
use crate::stages::Stage;
use crate::{Name, Shards};

/// Maximum bytes of a request's id that are kept.
const ID_BYTES_MAX: usize = 128;

/// The requests that are under way.
#[derive(Default)]
pub struct Requests {
    free: Shards<FreeList>,
    all: Mutex<Vec<&'static RequestSlot>>,
}

/// The slot of one request.
struct RequestSlot {
    /// The number of requests that had this slot, and in the lowest byte the stage.
    state: AtomicU64,
    about: Mutex<About>,
}

#[derive(Default)]
struct About {
    id: String,
    /// None while the slot is free.
    arrived: Option<Instant>,
    /// Knows the names of the request's pipeline and model.
    sink: Option<Arc<dyn Named>>,
}

/// A list of slots without a request.
type FreeList = Mutex<Vec<&'static RequestSlot>>;

/// A request that is under way. Dropping it ends that.
pub struct Tracked {
    /// Where its slot is from.
    home: &'static FreeList,
    progress: Progress,
}

/// The stage of a request. It does nothing once the request has ended.
#[derive(Clone, Copy)]
pub struct Progress {
    slot: &'static RequestSlot,
    turn: u64,
}

/// A request that is under way, as it was a moment ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Underway {
    /// Its id.
    pub id: String,
    /// When it arrived.
    pub arrived: Instant,
    /// The stage that it has reached.
    pub stage: Stage,
    /// Its tenant, once it is charged to it.
    pub tenant: Option<Name>,
    /// Its pipeline, if it has one.
    pub pipeline: Option<Name>,
    /// Its model.
    pub model: Option<Name>,
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").finish_non_exhaustive()
    }
}

impl Requests {
    /// Track a request with this id.
    pub fn track(&'static self, id: &str, arrived: Instant) -> Tracked {
        let home = self.free.local();
        let free = home.lock().pop();
        let slot = free.unwrap_or_else(|| {
            let about = Mutex::new(About::default());
            let slot = &*Box::leak(Box::new(RequestSlot { state: AtomicU64::new(0), about }));
            self.all.lock().push(slot);
            slot
        });
        {
            let mut about = slot.about.lock();
            about.id.clear();
            about.id.push_str(&id[..id.floor_char_boundary(ID_BYTES_MAX)]);
            about.arrived = Some(arrived);
        }
        let turn = slot.state.load(Relaxed) >> 8;
        Tracked { home, progress: Progress { slot, turn } }
    }

    /// The requests that are under way, in no order.
    pub fn underway(&self) -> Vec<Underway> {
        // Not held while slots are read.
        let all = self.all.lock().clone();
        all.into_iter().filter_map(RequestSlot::underway).collect()
    }
}

impl RequestSlot {
    fn underway(&'static self) -> Option<Underway> {
        let about = self.about.lock();
        let stage = (self.state.load(Relaxed) & 0xff) as usize;
        let SinkNames { tenant, pipeline, model } =
            about.sink.as_ref().map(|sink| sink.names()).unwrap_or_default();
        Some(Underway {
            id: about.id.clone(),
            arrived: about.arrived?,
            stage: *Stage::ALL.get(stage)?,
            tenant: tenant.cloned(),
            pipeline: pipeline.cloned(),
            model: model.cloned(),
        })
    }
}

impl Tracked {
    /// Its stage, for those who do not have the request itself.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Note the sink that knows the names of its pipeline and model, unless it has one.
    pub(crate) fn charged_to(&self, sink: Arc<dyn Named>) {
        self.progress.slot.about.lock().sink.get_or_insert(sink);
    }
}

impl Progress {
    /// The request begins this stage.
    pub fn enters(self, stage: Stage) {
        let next = self.turn << 8 | stage as u64;
        let state = &self.slot.state;
        // Another request may have the slot by now.
        let is_own = |state: u64| (state >> 8 == self.turn).then_some(next);
        let _ = state.fetch_update(Relaxed, Relaxed, is_own);
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let Progress { slot, turn } = self.progress;
        let sink = {
            let mut about = slot.about.lock();
            about.arrived = None;
            slot.state.store((turn + 1) << 8, Relaxed);
            about.sink.take()
        };
        // What this may free, it frees without the lock.
        drop(sink);
        self.home.lock().push(slot);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::receipt::{Receipt, Record, Sink};

    struct Acme(Name);

    impl Sink for Acme {
        fn record(&self, _: &Record, _: Duration) {}
    }

    impl Named for Acme {
        fn names(&self) -> SinkNames<'_> {
            SinkNames { tenant: Some(&self.0), ..SinkNames::default() }
        }
    }

    #[test]
    fn a_request_is_seen_with_its_stage_until_it_ends() {
        let requests: &'static Requests = Box::leak(Box::default());
        let arrived = Instant::now();
        let mut receipt = Receipt::open(arrived);
        receipt.track(requests, "one");
        receipt.charge_to(Arc::new(Acme("acme".parse().unwrap())));
        receipt.enters(Stage::Pre);
        let expected = Underway {
            id: "one".into(),
            arrived,
            stage: Stage::Pre,
            tenant: Some("acme".parse().unwrap()),
            pipeline: None,
            model: None,
        };
        assert_eq!(requests.underway(), [expected]);
        let late = receipt.follow().progress.unwrap();
        drop(receipt);
        assert_eq!(requests.underway(), []);
        // The next request takes its slot, and is not changed by what still follows the first.
        let next = requests.track("two", arrived);
        late.enters(Stage::Infer);
        let seen = requests.underway();
        assert_eq!((&*seen[0].id, seen[0].stage), ("two", Stage::Auth));
        drop(next);
        assert_eq!(requests.all.lock().len(), 1);
    }

    #[test]
    fn requests_that_end_on_another_thread_leave_their_places() {
        let requests: &'static Requests = Box::leak(Box::default());
        let (sender, receiver) = std::sync::mpsc::sync_channel::<Tracked>(1);
        std::thread::scope(|scope| {
            scope.spawn(move || receiver.into_iter().for_each(drop));
            for _ in 0..10_000 {
                sender.send(requests.track("one", Instant::now())).unwrap();
            }
            drop(sender);
        });
        // Those of the channel, of the thread that drops, and one that is being sent.
        assert!(requests.all.lock().len() <= 3, "{}", requests.all.lock().len());
    }
}
