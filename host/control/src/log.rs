//! Reading and writing the documents of the release log.
//!
//! A document is `{"format": 2, "digest": ..., "release": {...}}`. The digest is the SHA-256 of the
//! release's bytes as they stand there, so that a change inside a document is found. A release
//! carries its number, which its file's name must match, and the SHA-256 of the whole document
//! before it, so that a document that was swapped, replaced or made anew is found by the next.
//!
//! Format 1 is a bare release without digests, as versions before 2 wrote it. The chain begins at
//! the first document of format 2; after it nothing is read that is not part of the chain.

use bytes::Bytes;
use gristmill_core::Digest;
use gristmill_store::{LOG_END, LogListing, digest_of};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::release::{Change, Release};

/// The format that is written.
const FORMAT: u32 = 2;

/// How many files or ranges a message names.
const NAMED_MAX: usize = 10;

/// Up to where the log was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The last document's number; 0 before the first.
    pub(crate) number: u64,
    /// Of the last document's bytes.
    digest: Digest,
    /// Whether a document with digests was read: later ones must have them.
    chained: bool,
}

impl Default for Head {
    fn default() -> Self {
        Self { number: 0, digest: digest_of(b""), chained: false }
    }
}

#[derive(Deserialize)]
struct Probe {
    format: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    format: u32,
    digest: Digest,
    #[serde(borrow)]
    release: &'a RawValue,
}

impl Head {
    /// Of the last document's bytes.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// The release that `document` holds, where it is the next of this log, and the log's new head.
    pub(crate) fn read(&self, document: &[u8]) -> Result<(Release, Self), String> {
        let Probe { format } = parsed(document)?;
        let release = match format {
            None => self.read_bare(document)?,
            Some(FORMAT) => self.read_chained(document)?,
            Some(other) => {
                return Err(format!(
                    "its format is {other}, and this version of gristmill reads 1 to {FORMAT}"
                ));
            }
        };
        if release.number != self.number + 1 {
            return Err(format!("it says that it is release {}", release.number));
        }
        let head =
            Self { number: release.number, digest: digest_of(document), chained: format.is_some() };
        Ok((release, head))
    }

    fn read_bare(&self, document: &[u8]) -> Result<Release, String> {
        if self.chained {
            return Err("it carries no digest, and the release before it does".into());
        }
        parsed(document)
    }

    fn read_chained(&self, document: &[u8]) -> Result<Release, String> {
        let envelope: Envelope = parsed(document)?;
        let bytes = envelope.release.get().as_bytes();
        if digest_of(bytes) != envelope.digest {
            return Err("its content was changed: it has another digest".into());
        }
        let release: Release = parsed(bytes)?;
        if release.number == self.number + 1 && release.previous != Some(self.digest) {
            let before = self.number;
            return Err(format!(
                "it does not follow release {before} as it is now: one of the two was replaced"
            ));
        }
        Ok(release)
    }

    /// The document of the next release, and the head of a log that has it.
    pub(crate) fn write(
        &self,
        published_at_ms: u64,
        changes: Vec<Change>,
    ) -> serde_json::Result<(Bytes, Self)> {
        let number = self.number + 1;
        let release = Release { number, published_at_ms, previous: Some(self.digest), changes };
        let release = RawValue::from_string(serde_json::to_string_pretty(&release)?)?;
        let digest = digest_of(release.get().as_bytes());
        let mut document =
            serde_json::to_vec(&Envelope { format: FORMAT, digest, release: &release })?;
        document.push(b'\n');
        let head = Self { number, digest: digest_of(&document), chained: true };
        Ok((document.into(), head))
    }
}

fn parsed<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

/// What is wrong with a log that has these files: the numbers must be 1, 2, 3 and so on.
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
