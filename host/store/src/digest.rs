//! The name of a blob.

use gristmill_core::Digest;
use sha2::{Digest as _, Sha256};

/// The name of `blob`.
pub fn digest_of(blob: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(blob).into())
}
