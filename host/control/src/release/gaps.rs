//! Files that are missing in the release log, in words for the operator.

use gristmill_store::{LOG_END, LogListing};

/// The most files or ranges that a message names.
const NAMED_MAX: usize = 10;

/// The gaps of a log with these files: the numbers must be 1, 2, 3 and so on.
pub(crate) fn gap_in(listing: &LogListing) -> Option<String> {
    let numbers = &listing.numbers;
    let whole = (1..).zip(numbers).take_while(|(expected, number)| expected == *number).count();
    let behind = &numbers[whole..];
    if behind.is_empty() {
        return None;
    }
    let mut missing = Vec::new();
    let mut next = whole as u64 + 1;
    for number in behind {
        if *number > next {
            missing.push((next, number - 1));
        }
        next = number.saturating_add(1);
    }
    let found: Vec<_> = behind.chunk_by(|one, other| one + 1 == *other).collect();
    let found = found.iter().filter_map(|run| run.first().copied().zip(run.last().copied()));
    Some(format!(
        "the release log has a gap: {} missing, {} there; put the missing files back, or move the \
         files behind the gap out of the log's folder, and {LOG_END} beside it away, to serve the state \
         of release {whole} (keep a copy of the data directory: files that no release names are \
         removed)",
        named(missing.into_iter()),
        named(found),
    ))
}

/// "releases 2 and 4 to 6 are".
fn named(ranges: impl Iterator<Item = (u64, u64)>) -> String {
    let ranges: Vec<_> = ranges.collect();
    if let [(one, last)] = ranges[..]
        && one == last
    {
        return format!("release {one} is");
    }
    let text = |(first, last): &(u64, u64)| match last - first {
        0 => first.to_string(),
        _ => format!("{first} to {last}"),
    };
    let mut texts: Vec<_> = ranges.iter().take(NAMED_MAX).map(text).collect();
    if ranges.len() > NAMED_MAX {
        texts.push(format!("{} more ranges", ranges.len() - NAMED_MAX));
    }
    format!("releases {} are", texts.join(", "))
}

#[cfg(test)]
mod tests;
