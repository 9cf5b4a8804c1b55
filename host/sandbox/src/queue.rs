//! The queue of one owner's calls: which one begins when a permit is free, and which request is
//! refused because it cannot be answered in time.
//!
//! A call that waits holds nothing. It gets all permits that it needs at once, so no two calls wait
//! for one another.
//!
//! Invariants:
//! - calls that have begun go first, then the second calls of requests, then the first ones. So
//!   work that was done for a request is not lost;
//! - among calls that need the same permits the exports take turns (`line`), and the calls of one
//!   export begin in the order in which they came. So a pipeline does not wait for all calls of
//!   another that are of the same precedence;
//! - a call waits only for permits that it needs: a short one does not wait for a long one of
//!   another export;
//! - a request that waits and cannot be answered before its deadline is refused before any of its
//!   calls begins. As many as there are permits may wait in any case, so that the estimate stays
//!   true.

mod line;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

pub(crate) use self::line::Round;
use self::line::{LINES, Line};
use crate::error::{CallError, HostFault, TooBusy};

/// The kinds of permits.
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

/// The permits of a call, by their kind.
#[derive(Debug)]
pub(crate) struct Granted([Option<Permit>; KINDS]);

/// A permit, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    queue: Arc<Queue>,
    kind: Kind,
}

/// The permits of one owner, and its calls that wait for them.
#[derive(Debug)]
pub(crate) struct Queue(Mutex<QueueState>);

#[derive(Debug)]
struct QueueState {
    max: [usize; KINDS],
    free: [usize; KINDS],
    lines: [Line<Waiter>; LINES],
    /// The number of the next call that waits.
    next: u64,
}

/// The line of calls that have begun and need a permit for long calls. The lines are in the order
/// of their precedence.
const BEGUN: usize = 0;

/// The lines of equal precedence.
const PRECEDENCE: [std::ops::Range<usize>; 3] = [0..1, 1..3, 3..LINES];

#[derive(Debug)]
struct Waiter {
    latest: Option<Instant>,
    sender: oneshot::Sender<Admission>,
}

type Admission = Result<Granted, TooBusy>;

/// A call that has waited, and is answered now.
struct Next {
    line: usize,
    sender: oneshot::Sender<Admission>,
    refused: Option<TooBusy>,
}

/// A newcomer that waits, until it is dropped.
struct Ticket<'a> {
    queue: &'a Queue,
    line: usize,
    export: Round,
    number: u64,
    receiver: oneshot::Receiver<Admission>,
}

impl Granted {
    /// Take out the permit of this kind, if there is one.
    pub(crate) fn take(&mut self, kind: Kind) -> Option<Permit> {
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

/// The lines in which long calls of this half of their requests wait.
fn long_lines(half: Half) -> [usize; 2] {
    [false, true].map(|rests| Wanted { half, is_long: true, rests, latest: None }.line())
}

/// The permits that the calls of a line need, by [`Kind`].
fn needs(line: usize) -> [bool; KINDS] {
    match line {
        BEGUN => [false, true, false],
        1 | 2 => [true, line == 2, false],
        _ => [true, (line - 3) % 2 == 1, (line - 3) / 2 == 1],
    }
}

impl Queue {
    /// The queue of an owner with so many permits for calls, for long calls and for guests that
    /// wait for models.
    pub(crate) fn new(calls: usize, long_calls: usize, resting: usize) -> Arc<Self> {
        let max = [calls, long_calls, resting];
        Arc::new(Self(Mutex::new(QueueState::new(max))))
    }

    /// The permits of this kind that are taken.
    pub(crate) fn taken(&self, kind: Kind) -> usize {
        let state = self.0.lock();
        state.max[kind as usize] - state.free[kind as usize]
    }

    /// Whether long calls of this half of their requests wait.
    pub(crate) fn has_long(&self, half: Half) -> bool {
        let state = self.0.lock();
        long_lines(half).into_iter().any(|line| state.lines[line].len() > 0)
    }

    /// Whether long calls of this export and this half of their requests wait.
    pub(crate) fn has_long_of(&self, export: &Round, half: Half) -> bool {
        let state = self.0.lock();
        long_lines(half).into_iter().any(|line| state.lines[line].has(export))
    }

    /// Wait until the call may begin.
    ///
    /// # Errors
    /// [`CallError::TooBusy`] if its request cannot be answered in time.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        wanted: Wanted,
        export: &Round,
    ) -> Result<Granted, CallError> {
        self.wait(wanted.line(), wanted.latest, export).await
    }

    /// Wait for a permit for long calls, for a call that has begun.
    pub(crate) async fn long_permit(self: &Arc<Self>, export: &Round) -> Result<Permit, CallError> {
        let permit = self.wait(BEGUN, None, export).await?.take(Kind::Long);
        permit.ok_or(CallError::Host(HostFault::Ended))
    }

    async fn wait(
        self: &Arc<Self>,
        line: usize,
        latest: Option<Instant>,
        export: &Round,
    ) -> Result<Granted, CallError> {
        let mut ticket = {
            let mut state = self.0.lock();
            if state.has_free(line) {
                state.take(line);
                drop(state);
                return Ok(self.granted(line));
            }
            let (sender, receiver) = oneshot::channel();
            let waiting = Waiter { latest, sender };
            let number = state.add(line, waiting, export, Instant::now());
            let number = number.map_err(CallError::TooBusy)?;
            Ticket { queue: self, line, export: export.clone(), number, receiver }
        };
        match (&mut ticket.receiver).await {
            Ok(answer) => answer.map_err(CallError::TooBusy),
            Err(_) => Err(CallError::Host(HostFault::Ended)),
        }
    }

    /// The permits of a call of this line, which are taken already.
    fn granted(self: &Arc<Self>, line: usize) -> Granted {
        let needs = needs(line);
        let permit = |kind| Permit { queue: self.clone(), kind };
        Granted(ALL_KINDS.map(|kind| needs[kind as usize].then(|| permit(kind))))
    }

    fn give_back(self: &Arc<Self>, kind: Kind) {
        let now = Instant::now();
        self.0.lock().free[kind as usize] += 1;
        loop {
            let next = self.0.lock().next_answer(now);
            let Some(Next { line, sender, refused }) = next else { return };
            // Outside of the lock: if the call is gone, its permits are given back here.
            let _ = sender.send(refused.map_or_else(|| Ok(self.granted(line)), Err));
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.give_back(self.kind);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.queue.0.lock().lines[self.line].leave(&self.export, self.number);
    }
}

impl QueueState {
    fn new(max: [usize; KINDS]) -> Self {
        Self { max, free: max, lines: std::array::from_fn(Line::new), next: 0 }
    }

    fn has_free(&self, line: usize) -> bool {
        needs(line).iter().zip(self.free).all(|(needed, free)| !needed || free > 0)
    }

    fn take(&mut self, line: usize) {
        for (free, needed) in self.free.iter_mut().zip(needs(line)) {
            *free -= usize::from(needed);
        }
    }

    /// Let a call of this export wait in this line. Returns its number.
    fn add(
        &mut self,
        line: usize,
        waiting: Waiter,
        export: &Round,
        now: Instant,
    ) -> Result<u64, TooBusy> {
        let needed = needs(line).into_iter().zip(self.max).filter(|(needed, _)| *needed);
        let permits = needed.map(|(_, max)| max).min().unwrap_or(0);
        let line = &mut self.lines[line];
        let ahead = line.ahead(export);
        if let Some(latest) = waiting.latest.filter(|_| ahead >= permits) {
            let expected = line.expected(ahead + 1);
            let left = latest.saturating_duration_since(now);
            if expected > left {
                return Err(TooBusy { expected, left });
            }
        }
        let number = self.next;
        self.next += 1;
        line.add(export, number, waiting, now);
        Ok(number)
    }

    /// The next call that can have its permits, which are taken then, or that is refused.
    fn next_answer(&mut self, now: Instant) -> Option<Next> {
        for lines in PRECEDENCE {
            let first = |line: usize| {
                let (turn, waiting) = self.lines[line].first()?;
                Some((turn.number, line, turn, waiting.latest))
            };
            let can_begin = lines.filter(|line| self.has_free(*line)).filter_map(first);
            let Some((_, line, turn, latest)) = can_begin.min_by_key(|first| first.0) else {
                continue;
            };
            let entries = &mut self.lines[line];
            if latest.is_some_and(|latest| now > latest) {
                let Waiter { sender, .. } = entries.refuse(turn)?;
                let expected = entries.expected(entries.len() + 1);
                let refused = Some(TooBusy { expected, left: Duration::ZERO });
                return Some(Next { line, sender, refused });
            }
            let Waiter { sender, .. } = entries.begin(turn, now)?;
            self.take(line);
            return Some(Next { line, sender, refused: None });
        }
        None
    }
}

#[cfg(test)]
mod tests;
