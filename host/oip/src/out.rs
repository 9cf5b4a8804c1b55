//! JSON while it is written.

use bytes::Bytes;
use gristmill_core::HeldBytes;

use crate::error::ParseError;

/// How much JSON is written into one piece of memory.
const PART_BYTES: usize = 256 << 10;

/// JSON while it is written, piece by piece. Each full piece counts against the budget.
pub(crate) struct Out<'a> {
    pub(crate) parts: Vec<Bytes>,
    pub(crate) bytes: Vec<u8>,
    held: Option<&'a HeldBytes>,
}

impl<'a> Out<'a> {
    /// No JSON yet; what is much of it is added to `held`.
    pub(crate) fn new(held: Option<&'a HeldBytes>) -> Self {
        Self { parts: Vec::new(), bytes: Vec::with_capacity(256), held }
    }

    /// Begin a new piece where the last one is full, and count the full one.
    ///
    /// # Errors
    /// [`ParseError::OverBudget`] where the budget has no room for it.
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

/// Append `value`, which JSON can hold.
pub(crate) fn json(out: &mut Vec<u8>, value: &impl serde::Serialize) {
    // Neither a scalar nor a vector fails.
    let _ = serde_json::to_writer(out, value);
}
