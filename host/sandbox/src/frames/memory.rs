//! A guest's memory, of which any byte may be missing, and any may have any value.

/// The frames that are looked at.
pub(super) const FRAMES_MAX: usize = 64;

/// The texts in a memory that are looked at as if they were the one that is looked for.
pub(super) const TEXTS_MAX: usize = 64;

/// The characters of a name that are shown.
pub(super) const NAME_MAX: usize = 100;

#[derive(Clone, Copy)]
pub(super) struct Memory<'a>(pub(super) &'a [u8]);

impl<'a> Memory<'a> {
    pub(super) fn bytes(self, at: usize, count: usize) -> Option<&'a [u8]> {
        self.0.get(at..at.checked_add(count)?)
    }

    pub(super) fn byte(self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    /// A pointer or another number of 32 bits.
    pub(super) fn number(self, at: usize) -> Option<usize> {
        let bytes = self.bytes(at, 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes) as usize)
    }

    /// The number `offset` bytes after `at`.
    pub(super) fn field(self, at: usize, offset: usize) -> Option<usize> {
        self.number(at.checked_add(offset)?)
    }

    pub(super) fn word(self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(at, 8)?.try_into().ok()?))
    }

    /// A text of so many characters, of `width` bytes each. Others than letters are `?`.
    pub(super) fn text(self, at: usize, count: usize, width: usize) -> Option<String> {
        let letter = |bytes: &[u8]| {
            let code = bytes.iter().rev().fold(0, |code, byte| code << 8 | u32::from(*byte));
            char::from_u32(code).filter(|letter| !letter.is_control()).unwrap_or('?')
        };
        let bytes = self.bytes(at, count.checked_mul(width)?)?;
        Some(bytes.chunks_exact(width).map(letter).collect())
    }
}
