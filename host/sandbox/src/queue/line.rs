//! The calls that wait for the same permits: whose turn it is, and how long a newcomer waits.
//!
//! The exports take turns, as in start-time fair queueing (Goyal, Vin and Cheng, 1996). In each
//! round, one call of each export that waits begins. A long call counts as much as a short one. An
//! export that comes back to the line starts in the current round, so it has no turns to catch up
//! on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The number of lines in a queue.
pub(super) const LINES: usize = 7;

/// The round in which the next call of an export begins in each line, if it has to wait. Clones are
/// the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round(Arc<[AtomicU64; LINES]>);

/// A line has calls that need the same permits; `W` is what is kept of one that waits.
#[derive(Debug)]
pub(super) struct Line<W> {
    /// Its index among the lines.
    index: usize,
    /// The round of the last call that began.
    round: u64,
    /// By the address of the export's rounds.
    exports: BTreeMap<usize, Calls<W>>,
    /// The first call of each export.
    firsts: BTreeSet<Turn>,
    len: usize,
    /// When the last call of it began, or the first one came.
    last: Option<Instant>,
    intervals: Intervals,
}

/// The last times from one call that begins to the next one, while some wait.
#[derive(Debug, Default)]
struct Intervals {
    all: VecDeque<Duration>,
    sum: Duration,
}

/// The calls of an export that wait in a line, by their numbers. There is one at least.
#[derive(Debug)]
struct Calls<W> {
    export: Round,
    waiting: BTreeMap<u64, W>,
}

/// The turn of a call in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    round: u64,
    /// The number of the call: those that came earlier have lower ones.
    pub(super) number: u64,
    export: usize,
}

/// So many intervals are kept.
const INTERVALS_MAX: usize = 32;

/// Fewer intervals say nothing. If the last ones of this number are shorter than all, they count:
/// the first guests of a plugin take long, and a newcomer is not to pay for them.
const INTERVALS_MIN: usize = 8;

/// Fewer than all intervals say nothing if they are shorter together: hundreds of requests may come
/// at once before the plugin's first guests are there.
const TIME_MIN: Duration = Duration::from_secs(2);

/// A newcomer has to have this much more time than the mean says, in quarters.
const MARGIN_QUARTERS: u32 = 1;

impl Intervals {
    fn note(&mut self, interval: Duration) {
        if self.all.len() == INTERVALS_MAX {
            self.sum -= self.all.pop_front().unwrap_or_default();
        }
        self.all.push_back(interval);
        self.sum += interval;
    }

    /// The mean. 0 while it is not known.
    fn mean(&self) -> Duration {
        let count = self.all.len();
        let is_beginning = count < INTERVALS_MAX && self.sum < TIME_MIN;
        if count < INTERVALS_MIN || is_beginning {
            return Duration::ZERO;
        }
        let last: Duration = self.all.iter().rev().take(INTERVALS_MIN).sum();
        (last / INTERVALS_MIN as u32).min(self.sum / count as u32)
    }
}

impl Round {
    pub(super) fn of(&self, line: usize) -> u64 {
        self.0[line].load(Ordering::Relaxed)
    }

    fn key(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl<W> Line<W> {
    pub(super) fn new(index: usize) -> Self {
        Self {
            index,
            round: 0,
            exports: BTreeMap::new(),
            firsts: BTreeSet::new(),
            len: 0,
            last: None,
            intervals: Intervals::default(),
        }
    }

    /// Whether calls of this export wait.
    pub(super) fn has(&self, export: &Round) -> bool {
        self.exports.contains_key(&export.key())
    }

    /// How many calls wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// A call of this export waits from now on.
    pub(super) fn add(&mut self, export: &Round, number: u64, waiting: W, now: Instant) {
        if self.len == 0 {
            self.last = Some(now);
        }
        self.len += 1;
        let key = export.key();
        let calls = self.exports.entry(key).or_insert_with(|| {
            let before = export.0[self.index].fetch_max(self.round, Ordering::Relaxed);
            self.firsts.insert(Turn { round: before.max(self.round), number, export: key });
            Calls { export: export.clone(), waiting: BTreeMap::new() }
        });
        calls.waiting.insert(number, waiting);
    }

    /// A call does not wait any more, and does not begin.
    pub(super) fn leave(&mut self, export: &Round, number: u64) -> Option<W> {
        let round = export.of(self.index);
        self.take(Turn { round, number, export: export.key() }, round)
    }

    /// The call that begins next, and what is kept of it.
    pub(super) fn first(&self) -> Option<(Turn, &W)> {
        let turn = *self.firsts.first()?;
        Some((turn, self.exports.get(&turn.export)?.waiting.get(&turn.number)?))
    }

    /// The call with this turn, the first one of its export, begins.
    pub(super) fn begin(&mut self, turn: Turn, now: Instant) -> Option<W> {
        if let Some(last) = self.last.replace(now) {
            self.intervals.note(now.saturating_duration_since(last));
        }
        self.round = self.round.max(turn.round);
        let export = &self.exports.get(&turn.export)?.export;
        export.0[self.index].store(turn.round + 1, Ordering::Relaxed);
        self.take(turn, turn.round + 1)
    }

    /// Take out a call. The next one of its export has its turn in this round.
    fn take(&mut self, turn: Turn, next_round: u64) -> Option<W> {
        let calls = self.exports.get_mut(&turn.export)?;
        let waiting = calls.waiting.remove(&turn.number)?;
        self.len -= 1;
        let next = calls.waiting.first_key_value().map(|(number, _)| *number);
        if self.firsts.remove(&turn)
            && let Some(number) = next
        {
            self.firsts.insert(Turn { round: next_round, number, ..turn });
        }
        if next.is_none() {
            self.exports.remove(&turn.export);
        }
        Some(waiting)
    }

    /// The call with this turn, the first one of its export, does not wait any more, and does not
    /// begin.
    pub(super) fn refuse(&mut self, turn: Turn) -> Option<W> {
        self.take(turn, turn.round)
    }

    /// How many calls begin before a newcomer of this export, if no others come.
    pub(super) fn ahead(&self, export: &Round) -> usize {
        let own_calls = self.exports.get(&export.key()).map_or(0, |calls| calls.waiting.len());
        let round = export.of(self.index).max(self.round) + own_calls as u64;
        let before = |turn: &Turn| match self.exports.get(&turn.export) {
            Some(_) if turn.export == export.key() => own_calls,
            Some(calls) => calls.waiting.len().min((round + 1).saturating_sub(turn.round) as usize),
            None => 0,
        };
        self.firsts.iter().map(before).sum()
    }

    /// The time after which the call at this position begins, with a margin.
    pub(super) fn expected(&self, position: usize) -> Duration {
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        self.intervals.mean().saturating_mul(position).saturating_mul(4 + MARGIN_QUARTERS) / 4
    }
}
