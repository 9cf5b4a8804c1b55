//! Cutting and escaping texts that clients and plugins wrote.

use std::fmt::{self, Write};

/// The mark behind a text that was cut.
const CUT: &str = " [cut]";

/// The characters that are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// Characters that would end the line, or that look like other characters.
    Controls,
    /// Quotes and backslashes, too.
    Quoted,
    /// As JSON requires it.
    Json,
}

/// Collects a text up to a length. Writing more is an error, so that the writer stops.
pub(crate) struct CutText<'a> {
    line: &'a mut String,
    left: usize,
    escape: Escape,
    is_cut: bool,
}

impl<'a> CutText<'a> {
    /// At most `most` bytes, counted before they are escaped.
    pub(crate) fn new(line: &'a mut String, most: usize, escape: Escape) -> Self {
        Self { line, left: most, escape, is_cut: false }
    }

    /// Append the mark if the text was cut.
    pub(crate) fn end(self) {
        if self.is_cut {
            self.line.push_str(CUT);
        }
    }

    fn push(&mut self, text: &str) {
        let needs_none = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
        if text.as_bytes().iter().all(needs_none) {
            self.line.push_str(text);
            return;
        }
        for char in text.chars() {
            match (self.escape, char) {
                (Escape::Controls, '"' | '\\' | '\'') | (_, '\'') => self.line.push(char),
                (Escape::Json, '"' | '\\' | '\n' | '\r' | '\t') => {
                    self.line.extend(char.escape_default());
                }
                (Escape::Json, _) if char.escape_debug().len() > 1 => {
                    for unit in char.encode_utf16(&mut [0; 2]) {
                        let _ = write!(self.line, "\\u{unit:04x}");
                    }
                }
                _ => self.line.extend(char.escape_debug()),
            }
        }
    }
}

impl Write for CutText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let kept = &text[..text.floor_char_boundary(self.left)];
        self.push(kept);
        self.left -= kept.len();
        if kept.len() == text.len() {
            return Ok(());
        }
        (self.left, self.is_cut) = (0, true);
        Err(fmt::Error)
    }
}

/// Whether a field's value needs no quotes to be told from the next field.
pub(super) fn is_plain(text: &str) -> bool {
    let plain = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'/' | b'+' | b'-')
    };
    !text.is_empty() && text.as_bytes().iter().all(plain)
}

/// The approximate length of a text once it is escaped, for either format.
pub fn escaped_len(text: &str) -> usize {
    text.chars().map(|char| char.escape_debug().map(char::len_utf8).sum::<usize>()).sum()
}
