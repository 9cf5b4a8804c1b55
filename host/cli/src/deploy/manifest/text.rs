//! The text of a manifest's file, and the positions in it.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::DeValue;

use crate::deploy::position::FilePosition;

/// A file that is read.
pub(super) struct Text<'a> {
    /// The file as it was given.
    pub(super) file: String,
    /// The folder of the paths in it.
    pub(super) folder: &'a Path,
    pub(super) text: &'a str,
}

/// A value in the file.
pub(super) type Toml<'a> = Spanned<DeValue<'a>>;

impl Text<'_> {
    /// The position of the beginning of a span.
    pub(super) fn position(&self, span: Range<usize>) -> FilePosition {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        FilePosition { file: self.file.clone(), line }
    }
}
