//! The queue of one owner's calls: which one begins when a place is free, and which request is
//! refused because it cannot be answered in time.
//!
//! A call that waits holds nothing. It gets all places that it needs at once, so no two calls wait
//! for one another.
//!
//! Invariants:
//! - calls that have begun go first, then the second calls of requests, then the first ones, each
//!   in the order in which they came. So work that was done for a request is not lost;
//! - a call waits only for places that it needs: a short one does not wait for a long one;
//! - a request that waits and cannot be answered before its deadline is refused before any of its
//!   calls begins. As many as there are places may wait in any case, so that the estimate stays
//!   true.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::error::{CallError, HostFault, TooBusy};

/// The kinds of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of a call that has an instance.
    Call,
    /// Of a call that runs on the threads for long calls.
    Long,
    /// Of an instance that waits for the model of its request.
    Rest,
}

const KINDS: usize = 3;
const ALL_KINDS: [Kind; KINDS] = [Kind::Call, Kind::Long, Kind::Rest];

/// The call of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    First,
    Second,
}

/// A call that wants to begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) half: Half,
    /// Whether it begins on the threads for long calls.
    pub(crate) is_long: bool,
    /// Whether its instance stays for the second call of the request.
    pub(crate) rests: bool,
    /// The time at which it has to begin, so that its request is answered before its deadline.
    pub(crate) latest: Option<Instant>,
}

/// The places of a call, by their kind.
#[derive(Debug)]
pub(crate) struct Granted([Option<Place>; KINDS]);

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    queue: Arc<Queue>,
    kind: Kind,
}

/// The places of one owner, and its calls that wait for them.
#[derive(Debug)]
pub(crate) struct Queue(Mutex<State>);

#[derive(Debug)]
struct State {
    max: [usize; KINDS],
    free: [usize; KINDS],
    lines: [Line; LINES],
    /// The number of the next call that waits.
    next: u64,
}

/// The lines by their precedence. A line has calls that need the same places, in their order.
const LINES: usize = 7;

/// Those of calls that have begun and need a place for long calls.
const BEGUN: usize = 0;

/// The lines of equal precedence.
const PRECEDENCE: [std::ops::Range<usize>; 3] = [0..1, 1..3, 3..LINES];

#[derive(Debug, Default)]
struct Line {
    waiting: BTreeMap<u64, Waiting>,
    /// When the last call of it began, or the first one came.
    last: Option<Instant>,
    /// The mean time from one call that begins to the next one, while some wait.
    interval: Duration,
}

#[derive(Debug)]
struct Waiting {
    latest: Option<Instant>,
    sender: oneshot::Sender<Answer>,
}

type Answer = Result<Granted, TooBusy>;

/// A call that has waited, and is answered now.
struct Next {
    line: usize,
    sender: oneshot::Sender<Answer>,
    refused: Option<TooBusy>,
}

/// A new interval counts as this part of the mean.
const WEIGHT_OF_NEW: u32 = 16;

/// A newcomer has to have this much more time than the mean says, in quarters.
const MARGIN_QUARTERS: u32 = 1;

/// A newcomer that waits, until it is dropped.
struct Ticket<'a> {
    queue: &'a Queue,
    line: usize,
    number: u64,
    receiver: oneshot::Receiver<Answer>,
}

impl Granted {
    /// Take out the place of this kind, if there is one.
    pub(crate) fn take(&mut self, kind: Kind) -> Option<Place> {
        self.0[kind as usize].take()
    }
}

impl Wanted {
    fn line(self) -> usize {
        let is_long = usize::from(self.is_long);
        match self.half {
            Half::Second => 1 + is_long,
            Half::First => 3 + is_long + 2 * usize::from(self.rests),
        }
    }
}

/// The places that the calls of a line need, by [`Kind`].
fn needs(line: usize) -> [bool; KINDS] {
    match line {
        BEGUN => [false, true, false],
        1 | 2 => [true, line == 2, false],
        _ => [true, (line - 3) % 2 == 1, (line - 3) / 2 == 1],
    }
}

impl Queue {
    /// The queue of an owner with so many places for calls and for long calls.
    pub(crate) fn new(calls: usize, long_calls: usize) -> Arc<Self> {
        let max = [calls, long_calls, calls];
        Arc::new(Self(Mutex::new(State { max, free: max, lines: Default::default(), next: 0 })))
    }

    /// The places of this kind that are taken.
    pub(crate) fn taken(&self, kind: Kind) -> usize {
        let state = self.0.lock();
        state.max[kind as usize] - state.free[kind as usize]
    }

    /// Whether long calls of this half of their requests wait.
    pub(crate) fn has_long(&self, half: Half) -> bool {
        let line = |rests| Wanted { half, is_long: true, rests, latest: None }.line();
        let state = self.0.lock();
        [false, true].iter().any(|rests| !state.lines[line(*rests)].waiting.is_empty())
    }

    /// Wait until the call may begin.
    ///
    /// # Errors
    /// [`CallError::TooBusy`] if its request cannot be answered in time.
    pub(crate) async fn enter(self: &Arc<Self>, wanted: Wanted) -> Result<Granted, CallError> {
        self.wait(wanted.line(), wanted.latest).await
    }

    /// Wait for a place for long calls, for a call that has begun.
    pub(crate) async fn long_place(self: &Arc<Self>) -> Result<Place, CallError> {
        let place = self.wait(BEGUN, None).await?.take(Kind::Long);
        place.ok_or(CallError::Host(HostFault::Ended))
    }

    async fn wait(
        self: &Arc<Self>,
        line: usize,
        latest: Option<Instant>,
    ) -> Result<Granted, CallError> {
        let mut ticket = {
            let mut state = self.0.lock();
            if state.has_free(line) {
                state.take(line);
                drop(state);
                return Ok(self.granted(line));
            }
            let (sender, receiver) = oneshot::channel();
            let waiting = Waiting { latest, sender };
            let number = state.add(line, waiting, Instant::now()).map_err(CallError::TooBusy)?;
            Ticket { queue: self, line, number, receiver }
        };
        match (&mut ticket.receiver).await {
            Ok(answer) => answer.map_err(CallError::TooBusy),
            Err(_) => Err(CallError::Host(HostFault::Ended)),
        }
    }

    /// The places of a call of this line, which are taken already.
    fn granted(self: &Arc<Self>, line: usize) -> Granted {
        let needs = needs(line);
        let place = |kind| Place { queue: self.clone(), kind };
        Granted(ALL_KINDS.map(|kind| needs[kind as usize].then(|| place(kind))))
    }

    fn give_back(self: &Arc<Self>, kind: Kind) {
        let now = Instant::now();
        self.0.lock().free[kind as usize] += 1;
        loop {
            let next = self.0.lock().next_answer(now);
            let Some(Next { line, sender, refused }) = next else { return };
            // Outside of the lock: if the call is gone, its places are given back here.
            let _ = sender.send(refused.map_or_else(|| Ok(self.granted(line)), Err));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.give_back(self.kind);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.queue.0.lock().lines[self.line].waiting.remove(&self.number);
    }
}

impl State {
    fn has_free(&self, line: usize) -> bool {
        needs(line).iter().zip(self.free).all(|(needed, free)| !needed || free > 0)
    }

    fn take(&mut self, line: usize) {
        for (free, needed) in self.free.iter_mut().zip(needs(line)) {
            *free -= usize::from(needed);
        }
    }

    /// Let a call wait in this line. Returns its number.
    fn add(&mut self, line: usize, waiting: Waiting, now: Instant) -> Result<u64, TooBusy> {
        let needed = needs(line).into_iter().zip(self.max).filter(|(needed, _)| *needed);
        let places = needed.map(|(_, max)| max).min().unwrap_or(0);
        let entries = &mut self.lines[line];
        let ahead = entries.waiting.len();
        if let Some(latest) = waiting.latest.filter(|_| ahead >= places) {
            let expected = entries.expected(ahead + 1);
            let left = latest.saturating_duration_since(now);
            if expected > left {
                return Err(TooBusy { expected, left });
            }
        }
        if ahead == 0 {
            entries.last = Some(now);
        }
        let number = self.next;
        self.next += 1;
        entries.waiting.insert(number, waiting);
        Ok(number)
    }

    /// The next call that can have its places, which are taken then, or that is refused.
    fn next_answer(&mut self, now: Instant) -> Option<Next> {
        for lines in PRECEDENCE {
            let first = |line: usize| Some((*self.lines[line].waiting.first_key_value()?.0, line));
            let can_begin = lines.filter(|line| self.has_free(*line));
            let Some((_, line)) = can_begin.filter_map(first).min() else { continue };
            let entries = &mut self.lines[line];
            let (_, Waiting { latest, sender }) = entries.waiting.pop_first()?;
            if latest.is_some_and(|latest| now > latest) {
                let expected = entries.expected(entries.waiting.len() + 1);
                let refused = Some(TooBusy { expected, left: Duration::ZERO });
                return Some(Next { line, sender, refused });
            }
            entries.begins(now);
            self.take(line);
            return Some(Next { line, sender, refused: None });
        }
        None
    }
}

impl Line {
    /// A call begins that has waited.
    fn begins(&mut self, now: Instant) {
        let Some(last) = self.last.replace(now) else { return };
        let interval = now.saturating_duration_since(last);
        self.interval = match self.interval {
            Duration::ZERO => interval,
            mean => (mean * (WEIGHT_OF_NEW - 1) + interval) / WEIGHT_OF_NEW,
        };
    }

    /// The time after which the call at this position begins, with a margin.
    fn expected(&self, position: usize) -> Duration {
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        self.interval.saturating_mul(position).saturating_mul(4 + MARGIN_QUARTERS) / 4
    }
}

#[cfg(test)]
mod tests;
