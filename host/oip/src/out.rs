//! The memory into which JSON is written.

use bytes::Bytes;
use gristmill_core::HeldBytes;

use crate::error::ParseError;

/// How much JSON is written into one piece of memory.
const PART_BYTES: usize = 256 << 10;

/// JSON that is being written. Its bytes count against a budget.
pub(crate) struct Out<'a> {
    pub(crate) parts: Vec<Bytes>,
    pub(crate) bytes: Vec<u8>,
    held: Option<&'a HeldBytes>,
}

impl<'a> Out<'a> {
    /// Nothing yet; what is written counts as `held`.
    pub(crate) fn new(held: Option<&'a HeldBytes>) -> Self {
        Self { parts: Vec::new(), bytes: Vec::with_capacity(256), held }
    }

    /// Count the bytes that were written, if they are many.
    pub(crate) fn count(&mut self) -> Result<(), ParseError> {
        if self.bytes.len() < PART_BYTES {
            return Ok(());
        }
        if let Some(held) = self.held {
            held.try_add(self.bytes.len())?;
        }
        let next = Vec::with_capacity(PART_BYTES + PART_BYTES / 4);
        self.parts.push(std::mem::replace(&mut self.bytes, next).into());
        Ok(())
    }
}
