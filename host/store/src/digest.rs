//! The name of a blob.

use gristmill_core::Digest;

/// The name of `blob`.
pub fn digest_of(blob: &[u8]) -> Digest {
    Digest::of(blob)
}
