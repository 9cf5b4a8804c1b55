//! Finding files that are missing in the release log, and the message for the operator.

use std::fmt;
use std::ops::RangeInclusive;

use gristmill_store::{LOG_END, LogListing};

/// Maximum files or ranges that a message names.
const NAMED_MAX: usize = 10;

/// A log with gaps: its numbers must follow one another, from that behind the checkpoint on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the release log has a gap: {} missing, {} there; put the missing files back, or move the files \
     behind the gap out of the log's folder, and {LOG_END} beside it away, to serve the state of \
     release {whole} (keep a copy of the data directory: files that no release names are removed); \
     `gristmill fsck` names everything that is damaged",
    Ranges(.missing), Ranges(.present)
)]
pub struct LogGap {
    /// The last release before the first gap.
    pub whole: u64,
    /// The releases that are missing.
    pub missing: Vec<RangeInclusive<u64>>,
    /// The releases behind the first gap.
    pub present: Vec<RangeInclusive<u64>>,
}

/// The gaps of a log with these files, whose checkpoint stands for the releases up to `base`.
pub(crate) fn gap_in(listing: &LogListing, base: u64) -> Option<LogGap> {
    let kept = listing.numbers.partition_point(|number| *number <= base);
    let numbers = &listing.numbers[kept..];
    let whole = (base + 1..).zip(numbers).take_while(|(expected, number)| expected == *number);
    let whole = whole.count();
    let behind = &numbers[whole..];
    if behind.is_empty() {
        return None;
    }
    let whole = base + whole as u64;
    let mut missing = Vec::new();
    let mut next = whole + 1;
    for number in behind {
        if *number > next {
            missing.push(next..=number - 1);
        }
        next = number.saturating_add(1);
    }
    let present = behind.chunk_by(|one, other| one + 1 == *other);
    let present = present.filter_map(|run| Some(*run.first()?..=*run.last()?)).collect();
    Some(LogGap { whole, missing, present })
}

/// "releases 2, 4 to 6 are".
struct Ranges<'a>(&'a [RangeInclusive<u64>]);

impl fmt::Display for Ranges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.0;
        if let [range] = ranges
            && range.start() == range.end()
        {
            return write!(f, "release {} is", range.start());
        }
        let text = |range: &RangeInclusive<u64>| match (range.start(), range.end()) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first} to {last}"),
        };
        let mut texts: Vec<_> = ranges.iter().take(NAMED_MAX).map(text).collect();
        if ranges.len() > NAMED_MAX {
            texts.push(format!("{} more ranges", ranges.len() - NAMED_MAX));
        }
        write!(f, "releases {} are", texts.join(", "))
    }
}

#[cfg(test)]
mod tests;
