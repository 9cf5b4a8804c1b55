//! The memory that a request's tensors may take, besides the request's body.

use std::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{ByteBudget, HeldBytes};

use crate::error::ParseError;

/// Tensors of fewer bytes do not count against a budget.
const COUNTED_BYTES_MIN: usize = 4 << 10;

/// The memory that a request's tensors may still take. A tensor that is made from JSON or from
/// typed contents takes its memory from here before it is made.
pub struct Room<'a> {
    budget: Option<&'a Arc<ByteBudget>>,
    left: Cell<usize>,
}

/// The memory for one tensor. It counts against the budget although it is not filled yet.
pub struct Reserved {
    /// Empty, with capacity for the reserved bytes.
    pub bytes: Vec<u8>,
    held: Option<HeldBytes>,
}

impl<'a> Room<'a> {
    /// Room for one request: `bytes` for all of its tensors. They count against `budget`.
    pub fn new(budget: Option<&'a Arc<ByteBudget>>, bytes: usize) -> Self {
        Self { budget, left: Cell::new(bytes) }
    }

    /// Reserve `bytes` for the tensor called `name`.
    ///
    /// # Errors
    /// [`ParseError::TooLarge`] if the request's room has fewer bytes left,
    /// [`ParseError::OverBudget`] if the tenant's budget has no room for them.
    pub fn reserve(&self, name: &str, bytes: usize) -> Result<Reserved, ParseError> {
        let held = self.hold(name, bytes)?;
        Ok(Reserved { bytes: Vec::with_capacity(bytes), held })
    }

    /// Take `bytes` for the tensor called `name`. They count until they are dropped.
    ///
    /// # Errors
    /// [`ParseError::TooLarge`] if the request's room has fewer bytes left,
    /// [`ParseError::OverBudget`] if the tenant's budget has no room for them.
    pub(crate) fn hold(&self, name: &str, bytes: usize) -> Result<Option<HeldBytes>, ParseError> {
        let left = self.left.get();
        let Some(rest) = left.checked_sub(bytes) else {
            return Err(ParseError::TooLarge { name: name.into(), bytes, left });
        };
        let budget = self.budget.filter(|_| bytes >= COUNTED_BYTES_MIN);
        let held = budget.map(|budget| budget.hold(0));
        if let Some(held) = &held {
            held.try_add(bytes)?;
        }
        self.left.set(rest);
        Ok(held)
    }
}

impl Default for Room<'_> {
    /// Room without a limit.
    fn default() -> Self {
        Self::new(None, usize::MAX)
    }
}

impl Reserved {
    /// The bytes. They count until they are dropped.
    pub fn into_bytes(self) -> Bytes {
        let Self { bytes, held } = self;
        match held {
            Some(held) => held.attach_to(bytes.into()),
            None => bytes.into(),
        }
    }
}
