//! The bytes of text elements: a little-endian u32 length before each text.
//!
//! Reads and writes this one format; its reader checks whether a text is UTF-8.

/// The size of the length before each text, in bytes.
pub const TEXT_LENGTH_BYTES: usize = 4;

/// Append `text` with its length.
pub fn push_text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend(length_of(text));
    bytes.extend(text);
}

/// The bytes of the length that is written before `text`.
pub(crate) fn length_of(text: &[u8]) -> [u8; TEXT_LENGTH_BYTES] {
    (text.len() as u32).to_le_bytes()
}

/// Iterates over texts with their lengths. Ends when fewer bytes are left than a length needs, or
/// after a text that is cut short.
#[derive(Clone, Debug)]
pub struct Texts<'a> {
    rest: &'a [u8],
}

/// A text whose length is more than the bytes that are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is cut short")]
pub struct CutShort;

impl<'a> Texts<'a> {
    /// The texts in `bytes`.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that were not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Texts<'a> {
    type Item = Result<&'a [u8], CutShort>;

    fn next(&mut self) -> Option<Self::Item> {
        let (length, tail) = self.rest.split_first_chunk()?;
        let Some((text, tail)) = tail.split_at_checked(u32::from_le_bytes(*length) as usize) else {
            self.rest = &[];
            return Some(Err(CutShort));
        };
        self.rest = tail;
        Some(Ok(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        for text in [&b"one"[..], b"", b"\xff"] {
            push_text(&mut bytes, text);
        }
        let mut texts = Texts::of(&bytes);
        assert!(texts.by_ref().eq([Ok(&b"one"[..]), Ok(b""), Ok(b"\xff")]));
        assert!(texts.rest().is_empty());
    }

    #[test]
    fn a_cut_text_is_the_last() {
        let mut texts = Texts::of(b"\x05\0\0\0a\x01\0\0\0b");
        assert_eq!(texts.next(), Some(Ok(&b"a\x01\0\0\0"[..])));
        assert_eq!(texts.next(), None);
        assert_eq!(texts.rest(), b"b");
        assert!(Texts::of(b"\x05\0\0\0a").eq([Err(CutShort)]));
    }
}
