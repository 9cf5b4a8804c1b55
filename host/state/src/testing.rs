//! Helpers for the unit tests of several files.

use gristmill_core::{Digest, Name};

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn digest(byte: u8) -> Digest {
    Digest::from_bytes([byte; 32])
}
