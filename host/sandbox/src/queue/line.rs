//! The calls that wait for the same places: whose turn it is, and how long a newcomer waits.
//!
//! The exports take turns, as in start-time fair queueing (Goyal, Vin and Cheng, 1996): in each
//! round one call of each export begins. An export that has had no call for a while takes part from
//! the current round on, so it has no turns to catch up on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The round in which the next call of an export begins, if it has to wait. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round(Arc<AtomicU64>);

/// A line has calls that need the same places; `W` is what is kept of one that waits.
#[derive(Debug)]
pub(super) struct Line<W> {
    /// By the address of the export's round.
    exports: BTreeMap<usize, Calls<W>>,
    /// When the last call of it began, or the first one came.
    last: Option<Instant>,
    /// The mean time from one call that begins to the next one, while some wait.
    interval: Duration,
}

/// The calls of an export that wait in a line, by their numbers. There is one at least.
#[derive(Debug)]
struct Calls<W> {
    export: Round,
    waiting: BTreeMap<u64, W>,
}

/// The call of a line that begins first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct First {
    round: u64,
    number: u64,
    export: usize,
}

/// A new interval counts as this part of the mean.
const WEIGHT_OF_NEW: u32 = 16;

/// A newcomer has to have this much more time than the mean says, in quarters.
const MARGIN_QUARTERS: u32 = 1;

impl Round {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn key(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl<W> Default for Line<W> {
    fn default() -> Self {
        Self { exports: BTreeMap::new(), last: None, interval: Duration::ZERO }
    }
}

impl<W> Line<W> {
    pub(super) fn is_empty(&self) -> bool {
        self.exports.is_empty()
    }

    /// How many calls wait.
    pub(super) fn len(&self) -> usize {
        self.exports.values().map(|calls| calls.waiting.len()).sum()
    }

    /// A call of this export waits from now on. The current round is `round`.
    pub(super) fn add(&mut self, export: &Round, round: u64, number: u64, waiting: W) {
        let calls = self.exports.entry(export.key()).or_insert_with(|| {
            export.0.fetch_max(round, Ordering::Relaxed);
            Calls { export: export.clone(), waiting: BTreeMap::new() }
        });
        calls.waiting.insert(number, waiting);
    }

    /// A call does not wait any more.
    pub(super) fn remove(&mut self, export: &Round, number: u64) -> Option<W> {
        let calls = self.exports.get_mut(&export.key())?;
        let removed = calls.waiting.remove(&number);
        if calls.waiting.is_empty() {
            self.exports.remove(&export.key());
        }
        removed
    }

    /// The call that begins first.
    pub(super) fn first(&self) -> Option<First> {
        let first = |(export, calls): (&usize, &Calls<W>)| {
            let (number, _) = calls.waiting.first_key_value()?;
            Some(First { round: calls.export.get(), number: *number, export: *export })
        };
        self.exports.iter().filter_map(first).min()
    }

    /// Take out a call, with its export.
    pub(super) fn take(&mut self, first: First) -> Option<(Round, W)> {
        let export = self.exports.get(&first.export)?.export.clone();
        let waiting = self.remove(&export, first.number)?;
        Some((export, waiting))
    }

    /// A call of this export begins that has waited. Returns its round.
    pub(super) fn begins(&mut self, export: &Round, now: Instant) -> u64 {
        if let Some(last) = self.last.replace(now) {
            let interval = now.saturating_duration_since(last);
            self.interval = match self.interval {
                Duration::ZERO => interval,
                mean => (mean * (WEIGHT_OF_NEW - 1) + interval) / WEIGHT_OF_NEW,
            };
        }
        export.0.fetch_add(1, Ordering::Relaxed)
    }

    /// The first call of the line has come: the time to the next one that begins is taken from now.
    pub(super) fn starts(&mut self, now: Instant) {
        self.last = Some(now);
    }

    /// How many calls begin before a newcomer of this export. The current round is `round`.
    pub(super) fn ahead(&self, export: &Round, round: u64) -> usize {
        let own = self.exports.get(&export.key()).map_or(0, |calls| calls.waiting.len());
        let round = export.get().max(round) + own as u64;
        let before = |(key, calls): (&usize, &Calls<W>)| {
            let rounds = (round + 1).saturating_sub(calls.export.get());
            let is_own = *key == export.key();
            if is_own { own } else { calls.waiting.len().min(rounds as usize) }
        };
        self.exports.iter().map(before).sum()
    }

    /// The time after which the call at this position begins, with a margin.
    pub(super) fn expected(&self, position: usize) -> Duration {
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        self.interval.saturating_mul(position).saturating_mul(4 + MARGIN_QUARTERS) / 4
    }
}
