//! Events for pages that watch the server: what they show, once a second, and then what has
//! changed.
//!
//! A feed has the events for all listeners that see the same. Each second the first listener that
//! wakes makes the event, and the others take it. A listener that did not take the one before gets
//! all in place of the changes, so a slow one skips events and costs nothing more.
//!
//! Refuses to know what is shown: `resource::events` makes it.
//!
//! Invariants: listeners are bounded, and those of operators have places of their own. All of them
//! leave a third of the admin plane's connections to others, also where it has the fewest (64):
//! each holds one. A feed and its last event live as long as a listener does.

mod changes;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use gristmill_core::{ErrorCode, Name};
use gristmill_transport::Problem;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use self::changes::{changed_lines, changes};

/// The time between two events.
const INTERVAL: Duration = Duration::from_secs(1);

/// Maximum listeners with tokens of the whole server, together.
const OPERATORS_MAX: usize = 24;

/// Maximum listeners with one token of a few tenants, and with all of these.
const OWN_MAX: usize = 4;
const GUESTS_MAX: usize = 16;

/// A line that says nothing, so that the connection is known to live.
const NOTHING: &[u8] = b":\n\n";

/// The feeds of a server, and their listeners.
pub(crate) struct Feeds {
    began: Instant,
    listening: Arc<Mutex<Listening>>,
}

#[derive(Default)]
struct Listening {
    /// By the tenants that are seen; None for all.
    feeds: BTreeMap<Option<BTreeSet<Name>>, Weak<Feed>>,
    /// The number of listeners by the name of the token of a few tenants; None for all others.
    counts: HashMap<Option<Name>, usize>,
}

/// The events for all that see the same.
struct Feed {
    began: Instant,
    last: tokio::sync::Mutex<Option<Arc<Event>>>,
}

/// What is shown at one moment.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) status: Value,
    /// All metrics as text. None if they are not for this listener.
    pub(crate) metrics: Option<Bytes>,
}

struct Event {
    /// The events of a feed are counted.
    number: u64,
    /// When it was made, in intervals since the feeds began.
    turn: u64,
    shown: Shown,
    all: OnceLock<Bytes>,
    /// Since the event before. None if all is to be sent in its place.
    changes: Option<Bytes>,
}

/// The data of an event.
#[derive(Serialize)]
struct Data<'a> {
    /// All of it, or what has changed, as a merge patch (RFC 7396).
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a Value>,
    /// All of it, or the lines that have changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<&'a str>,
}

/// A listener of a feed. Dropping it gives its place back.
pub(crate) struct Listener {
    feed: Arc<Feed>,
    /// The last event that it took: its number, and its turn.
    taken: Option<(u64, u64)>,
    listening: Arc<Mutex<Listening>>,
    guest: Option<Name>,
}

impl Default for Feeds {
    fn default() -> Self {
        Self { began: Instant::now(), listening: Arc::default() }
    }
}

impl Feeds {
    /// Listen to what is shown of these tenants, or of all. `guest` is the name of the token if it
    /// is one of a few tenants.
    ///
    /// # Errors
    /// There are as many listeners as there may be.
    pub(crate) fn listen(
        &self,
        tenants: Option<BTreeSet<Name>>,
        guest: Option<&Name>,
    ) -> Result<Listener, Problem> {
        let mut listening = self.listening.lock();
        listening.check(guest)?;
        listening.feeds.retain(|_, feed| feed.strong_count() > 0);
        let open_feed = listening.feeds.get(&tenants).and_then(Weak::upgrade);
        let feed = open_feed.unwrap_or_else(|| {
            let feed = Arc::new(Feed { began: self.began, last: tokio::sync::Mutex::default() });
            listening.feeds.insert(tenants, Arc::downgrade(&feed));
            feed
        });
        let guest = guest.cloned();
        *listening.counts.entry(guest.clone()).or_default() += 1;
        Ok(Listener { feed, taken: None, listening: self.listening.clone(), guest })
    }
}

impl Listening {
    fn check(&self, guest: Option<&Name>) -> Result<(), Problem> {
        let count = |of: &Option<Name>| self.counts.get(of).copied().unwrap_or_default();
        let operators = count(&None);
        let (has, most, whose) = match guest {
            None => (operators, OPERATORS_MAX, "with tokens of the whole server".to_owned()),
            Some(name) if count(&Some(name.clone())) >= OWN_MAX => {
                (OWN_MAX, OWN_MAX, format!("with the token {:?}", name.as_str()))
            }
            Some(_) => {
                let guests = self.counts.values().sum::<usize>() - operators;
                (guests, GUESTS_MAX, "with tokens of a few tenants".to_owned())
            }
        };
        if has < most {
            return Ok(());
        }
        let detail = format!(
            "{most} clients {whose} listen to events, the limit: try again when one has left, or \
             read the status"
        );
        Err(Problem::new(ErrorCode::TokenBusy, detail))
    }
}

impl Listener {
    /// The next event, as it is sent: at once for a new listener, otherwise with the next turn.
    /// `make` reads what is shown. None if that failed.
    pub(crate) async fn next<F: Future<Output = Option<Shown>>>(
        &mut self,
        make: impl FnOnce() -> F,
    ) -> Option<Bytes> {
        let feed = &self.feed;
        if let Some((_, turn)) = self.taken {
            sleep_until(feed.began + INTERVAL * (turn as u32 + 1)).await;
        }
        let turn = feed.turn();
        let mut last = feed.last.lock().await;
        let event = match &*last {
            Some(event) if event.turn >= turn => event.clone(),
            before => {
                let event = Arc::new(Event::of(make().await?, turn, before.as_deref()));
                *last = Some(event.clone());
                event
            }
        };
        drop(last);
        let is_next = self.taken.is_some_and(|(number, _)| number + 1 == event.number);
        let changes = event.changes.clone().filter(|_| is_next);
        let sent = changes.or_else(|| event.all())?;
        self.taken = Some((event.number, event.turn));
        Some(sent)
    }
}

impl Feed {
    /// The number of intervals that have passed.
    fn turn(&self) -> u64 {
        self.began.elapsed().as_secs() / INTERVAL.as_secs()
    }
}

impl Event {
    fn of(shown: Shown, turn: u64, before: Option<&Self>) -> Self {
        let number = before.map_or(0, |before| before.number + 1);
        let changes = before.and_then(|before| since(&before.shown, &shown, number));
        Self { number, turn, shown, all: OnceLock::new(), changes }
    }

    /// All that is shown. None if it cannot be written as JSON.
    fn all(&self) -> Option<Bytes> {
        if let Some(all) = self.all.get() {
            return Some(all.clone());
        }
        let metrics = self.shown.metrics.as_deref().map(str::from_utf8).transpose().ok()?;
        let made = frame("all", self.number, &Data { status: Some(&self.shown.status), metrics })?;
        Some(self.all.get_or_init(|| made).clone())
    }
}

/// What has changed between two events. None if it is not told apart.
fn since(before: &Shown, after: &Shown, number: u64) -> Option<Bytes> {
    let status = changes(&before.status, &after.status);
    let metrics = match (&before.metrics, &after.metrics) {
        (Some(before), Some(after)) => {
            changed_lines(str::from_utf8(before).ok()?, str::from_utf8(after).ok()?)?
        }
        _ => String::new(),
    };
    if status.is_none() && metrics.is_empty() {
        return Some(Bytes::from_static(NOTHING));
    }
    let metrics = (!metrics.is_empty()).then_some(metrics.as_str());
    frame("changes", number, &Data { status: status.as_ref(), metrics })
}

/// An event as `text/event-stream` has it. JSON has no line ends.
fn frame(kind: &str, number: u64, data: &Data<'_>) -> Option<Bytes> {
    let mut text = format!("event: {kind}\nid: {number}\ndata: ").into_bytes();
    serde_json::to_writer(&mut text, data).ok()?;
    text.extend(b"\n\n");
    Some(text.into())
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut listening = self.listening.lock();
        if let Some(count) = listening.counts.get_mut(&self.guest) {
            *count -= 1;
            if *count == 0 {
                listening.counts.remove(&self.guest);
            }
        }
    }
}

#[cfg(test)]
mod tests;
