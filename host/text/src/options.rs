//! How texts are encoded, and what comes of them.

/// How a text is encoded.
#[derive(Clone, Copy, Debug, Default)]
pub struct EncodeOptions {
    /// Add the special tokens of the file's post-processor.
    pub add_special_tokens: bool,
    /// Maximum tokens, special tokens included. None: as the file says.
    pub max_length: Option<usize>,
    /// The side on which tokens are cut off. None: as the file says, or the right.
    pub truncate: Option<Side>,
    /// The unit of the offsets. None makes no offsets.
    pub offsets: Option<OffsetUnit>,
}

/// A side of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Its beginning.
    Left,
    /// Its end.
    Right,
}

/// What offsets count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetUnit {
    /// Characters (Unicode scalar values), as in Python.
    Characters,
    /// Bytes of UTF-8, as in Rust.
    Bytes,
}

/// The tokens of one text, or of one pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Their ids.
    pub ids: Vec<u32>,
    /// The text of the pair that each is of; as the file's post-processor numbers them.
    pub type_ids: Vec<u32>,
    /// Where each begins and ends in its text. Empty if none were asked for.
    pub offsets: Vec<(u32, u32)>,
}

impl Encoded {
    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        let tokens = self.ids.capacity() + self.type_ids.capacity();
        tokens * size_of::<u32>() + self.offsets.capacity() * size_of::<(u32, u32)>()
    }
}
