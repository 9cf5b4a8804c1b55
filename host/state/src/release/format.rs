//! The bytes of the release log: how a release becomes a document, and a document a release.
//!
//! A document is `{"format": 11, "digest": ..., "release": {...}}`. The digest is the SHA-256 of
//! the format's number and of the release's bytes, so that a change inside a document is found. A
//! release contains its number, which its file's name must match, and the SHA-256 of the whole
//! document before it. So a document that was swapped, replaced or written again does not match the
//! next one.
//!
//! An older format lacks all that the formats after it lack, and more:
//! - format 10: there are no assets, pipelines have no `oip`, tenants neither `cors` nor
//!   `redirects` nor `http` nor `try_page` nor `plugin_signers`, configurations of models neither
//!   `pad` nor `cut`;
//! - format 9: pipelines have no `handler`, tenants no `stores`;
//! - format 8: tenants have no `batch_with`, configurations of models neither `batching` nor
//!   `batch_proof_ms`, `input` nor `output`, their `max_batch_size` is not 0 and no size is "auto",
//!   versions of models are numbers of releases, and names of models have at most 64 characters and
//!   no capitals;
//! - format 7: configurations of models have no `allowed_batch_sizes`, and always a `warm_up`;
//! - format 6: only the newest version of a plugin or a model stays. So pipelines name no versions,
//!   configurations of models have no `version_policy`, tenants have no `plugin_version_policy`,
//!   and no release brings back an earlier version. Pipelines have neither `candidate` nor
//!   `capture`. Samples have no headers;
//! - format 5: there are no admin tokens. A key's hash is a plain SHA-256, made without the
//!   server's secret. Tenants have no quota, pipelines no `samples`, configurations of models no
//!   `warm_up`;
//! - format 4: no release says who made it;
//! - format 3: a tenant's keys are a list of digests without names, and no release changes a single
//!   key;
//! - format 2: pipelines have neither `instance_reuse` nor `debug`, and the digest covers only the
//!   release's bytes.
//!
//! Format 1 is a bare release without digests and without the field `format`. The chain begins at
//! the first document of format 2 or later; every later document must be part of it. A document of
//! a later format is refused because of its format number, before anything else in it is read. A
//! version that adds something to releases that this version cannot read, such as a new kind of
//! change or a new key, must use a new format.
//!
//! Invariant: a release is read once before it is written. So nothing that a client sends can make
//! a log that no start can read.

mod readable;

use bytes::Bytes;
use gristmill_core::Digest;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::release::change::{Change, Release, ReleaseNote};
use crate::release::log_error::LogError;

/// The format that is written.
const FORMAT: u32 = 11;

/// The first format with digests.
const CHAINED_FORMAT: u32 = 2;

/// The end of the part of the log that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The last document's number; 0 before the first.
    pub number: u64,
    /// Of the last document's bytes.
    digest: Digest,
    /// Whether a document with digests was read: later ones must have them.
    chained: bool,
}

impl Default for Head {
    fn default() -> Self {
        Self { number: 0, digest: Digest::of(b""), chained: false }
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
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The head of a log whose last document has this number and digest.
    pub fn at(number: u64, digest: Digest, chained: bool) -> Self {
        Self { number, digest, chained }
    }

    /// Whether all later documents must have digests.
    pub fn is_chained(&self) -> bool {
        self.chained
    }

    /// Read the release in `document`, which must be the next of this log. Also returns the log's
    /// new head.
    pub fn read(&self, document: &[u8]) -> Result<(Release, Self), LogError> {
        let Probe { format } = parsed(document)?;
        let release = match format {
            None => self.read_bare(document)?,
            Some(format @ CHAINED_FORMAT..=FORMAT) => self.read_chained(format, document)?,
            Some(format) => return Err(LogError::Newer { format, newest: FORMAT }),
        };
        if release.number != self.number + 1 {
            return Err(LogError::Misplaced(release.number));
        }
        let head = Self {
            number: release.number,
            digest: Digest::of(document),
            chained: format.is_some(),
        };
        Ok((release, head))
    }

    /// The head before the release `number` as its `document` has it, for reading on behind a
    /// document that cannot be used.
    pub fn claimed_by(number: u64, document: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Claim {
            previous: Option<Digest>,
        }
        let envelope = parsed::<Envelope>(document).ok();
        let claim =
            envelope.and_then(|envelope| parsed::<Claim>(envelope.release.get().as_bytes()).ok());
        let digest = claim.and_then(|claim| claim.previous);
        let before = Self { number: number.saturating_sub(1), ..Self::default() };
        Self { digest: digest.unwrap_or(before.digest), ..before }
    }

    fn read_bare(&self, document: &[u8]) -> Result<Release, LogError> {
        if self.chained {
            return Err(LogError::Unchained);
        }
        parsed(document)
    }

    fn read_chained(&self, format: u32, document: &[u8]) -> Result<Release, LogError> {
        let envelope: Envelope = parsed(document)?;
        let bytes = envelope.release.get().as_bytes();
        if digest_in(format, bytes) != envelope.digest {
            return Err(LogError::Changed);
        }
        let release: Release = parsed(bytes)?;
        if release.number == self.number + 1 && release.previous != Some(self.digest) {
            return Err(LogError::Replaced { before: self.number });
        }
        Ok(release)
    }

    /// The document of the next release, and the head of the log with it.
    ///
    /// # Errors
    /// The document could not be read.
    pub fn write(
        &self,
        published_at_ms: u64,
        note: ReleaseNote,
        changes: Vec<Change>,
    ) -> serde_json::Result<(Bytes, Self)> {
        let number = self.number + 1;
        let previous = Some(self.digest);
        let release = Release { number, published_at_ms, previous, note, changes };
        let release = RawValue::from_string(readable::to_string(&release)?)?;
        // A log that cannot be read starts no server.
        let _: Release = serde_json::from_str(release.get())?;
        let digest = digest_in(FORMAT, release.get().as_bytes());
        let mut document =
            serde_json::to_vec(&Envelope { format: FORMAT, digest, release: &release })?;
        document.push(b'\n');
        let head = Self { number, digest: Digest::of(&document), chained: true };
        Ok((document.into(), head))
    }
}

/// The digest of a release's bytes in a document of this format. From format 3 on it covers the
/// format's number, so that a document of one format is not read as one of another.
fn digest_in(format: u32, release: &[u8]) -> Digest {
    if format == CHAINED_FORMAT {
        return Digest::of(release);
    }
    Digest::of(&[format.to_string().as_bytes(), b"\n", release].concat())
}

fn parsed<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, LogError> {
    Ok(serde_json::from_slice(bytes)?)
}

#[cfg(test)]
mod tests;
