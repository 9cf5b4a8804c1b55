//! The memory into which JSON is written.

use bytes::Bytes;
use gristmill_core::HeldBytes;

use crate::error::ParseError;

/// The bytes of JSON that are written into one piece of memory.
const PART_BYTES: usize = 256 << 10;

/// JSON that is being written, piece by piece. Each full piece counts against the budget.
pub(crate) struct Out {
    pub(crate) parts: Vec<Bytes>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) held: Option<HeldBytes>,
}

impl Out {
    /// Nothing is written yet. Full pieces will be added to `held`.
    pub(crate) fn new(held: Option<HeldBytes>) -> Self {
        Self { parts: Vec::new(), bytes: Vec::with_capacity(256), held }
    }

    /// If the current piece is full, count it and begin a new one.
    ///
    /// # Errors
    /// [`ParseError::OverBudget`] if the budget has no room for it.
    pub(crate) fn count(&mut self) -> Result<(), ParseError> {
        if self.bytes.len() < PART_BYTES {
            return Ok(());
        }
        if let Some(held) = &self.held {
            held.try_add(self.bytes.len())?;
        }
        let next = Vec::with_capacity(PART_BYTES + PART_BYTES / 4);
        self.parts.push(std::mem::replace(&mut self.bytes, next).into());
        Ok(())
    }
}

/// Append `value`: a scalar, a text or a list.
pub(crate) fn json(out: &mut Vec<u8>, value: &impl serde::Serialize) {
    // Such values and writing to a vector do not fail.
    let _ = serde_json::to_writer(out, value);
}
