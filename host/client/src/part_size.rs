//! The size of the parts in which a file is uploaded. Pure.
//!
//! A part takes about a second: then a cut connection costs a second's work, progress moves each
//! second, and on a fast connection the time between two parts does not count.

use std::time::Duration;

const FIRST_BYTES: usize = 1 << 20;
const BYTES_MIN: usize = 64 << 10;
const BYTES_MAX: usize = 32 << 20;

/// The time that a part shall take.
const WANTED: Duration = Duration::from_secs(1);

/// The size of the next part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartSize(usize);

impl PartSize {
    /// That of the first part.
    pub(crate) fn first() -> Self {
        Self(FIRST_BYTES)
    }

    pub(crate) fn bytes(self) -> usize {
        self.0
    }

    /// After a part of this size, which took this time. It at most doubles or halves.
    pub(crate) fn after(self, took: Duration) -> Self {
        let wanted = match took {
            took if took < WANTED / 2 => self.0.saturating_mul(2),
            took if took > WANTED * 2 => self.0 / 2,
            _ => self.0,
        };
        Self(wanted.clamp(BYTES_MIN, BYTES_MAX))
    }

    /// After a part that did not arrive.
    pub(crate) fn after_failure(self) -> Self {
        Self((self.0 / 4).max(BYTES_MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_takes_about_a_second_within_bounds() {
        let [fast, right, slow] = [10, 1000, 5000].map(Duration::from_millis);
        let mut size = PartSize::first();
        assert_eq!(size.after(right).bytes(), FIRST_BYTES);
        assert_eq!(size.after(fast).bytes(), 2 * FIRST_BYTES);
        for _ in 0..20 {
            size = size.after(fast);
        }
        assert_eq!(size.bytes(), BYTES_MAX);
        assert_eq!(size.after_failure().bytes(), BYTES_MAX / 4);
        for _ in 0..20 {
            size = size.after(slow);
        }
        assert_eq!((size.bytes(), size.after_failure().bytes()), (BYTES_MIN, BYTES_MIN));
    }
}
