//! A walk over a file's header that asks the caller from time to time whether to go on.

use crate::error::Stopped;

/// The bytes, or steps of about the same cost, between two checks.
pub(crate) const BETWEEN: usize = 64 << 10;

/// The bytes that are searched at a time.
const WINDOW_BYTES: usize = 16 << 10;

/// The cost of a search that finds something at once.
const SEARCH_STEPS: usize = 8;

/// Counts steps, and checks after each [`BETWEEN`] steps, but not before the first.
pub(super) struct Walk<'a> {
    check: &'a dyn Fn() -> Result<(), Stopped>,
    /// Steps until the next check.
    left: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(check: &'a dyn Fn() -> Result<(), Stopped>) -> Self {
        Self { check, left: BETWEEN }
    }

    /// Count `steps` that are about to be taken.
    #[inline]
    pub(super) fn steps(&mut self, steps: usize) -> Result<(), Stopped> {
        match self.left.checked_sub(steps) {
            Some(left) => self.left = left,
            None => {
                (self.check)()?;
                self.left = BETWEEN;
            }
        }
        Ok(())
    }

    /// The next position of `byte`, from `start` on.
    pub(super) fn find(
        &mut self,
        bytes: &[u8],
        start: usize,
        byte: u8,
    ) -> Result<Option<usize>, Stopped> {
        self.search(bytes, start, |window| memchr::memchr(byte, window))
    }

    /// The next position of another byte than `byte`, from `start` on.
    pub(super) fn find_other(
        &mut self,
        bytes: &[u8],
        start: usize,
        byte: u8,
    ) -> Result<Option<usize>, Stopped> {
        self.search(bytes, start, |window| window.iter().position(|other| *other != byte))
    }

    #[inline]
    fn search(
        &mut self,
        bytes: &[u8],
        start: usize,
        find: impl Fn(&[u8]) -> Option<usize>,
    ) -> Result<Option<usize>, Stopped> {
        let mut from = start;
        while let Some(rest) = bytes.get(from..).filter(|rest| !rest.is_empty()) {
            let window = &rest[..rest.len().min(WINDOW_BYTES)];
            let offset = find(window);
            self.steps(SEARCH_STEPS + offset.unwrap_or(window.len()))?;
            if let Some(offset) = offset {
                return Ok(Some(from + offset));
            }
            from += window.len();
        }
        Ok(None)
    }
}
