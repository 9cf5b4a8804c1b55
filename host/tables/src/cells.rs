//! The cells of a line of CSV, as RFC 4180 has them, but that no cell goes over its line's end.
//!
//! A table and the file of `gristmill kv load` are read by the same rules, so that one file serves
//! both.

use std::borrow::Cow;

use memchr::memchr;

/// What encloses a cell that may have commas.
pub(crate) const QUOTE: u8 = b'"';

/// The same, as a char.
const QUOTE_CHAR: char = '"';

/// Why a line has no further cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// A cell is open at the line's end.
    #[error(
        "a cell begins with a quotation mark, and no other one ends it on its line: a cell has no \
         line's end"
    )]
    Open,
    /// There is more behind a quoted cell.
    #[error(
        "a cell goes on behind its second quotation mark: write one within a cell twice, as \
         \"7\"\" pipe\""
    )]
    Behind,
    /// A cell that is not quoted has a quotation mark.
    #[error(
        "a quotation mark stands within a cell that does not begin with one: write the cell as \
         \"7\"\" pipe\""
    )]
    Within,
}

/// A cell of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<'a> {
    /// What stands in the file, between the quotation marks if it is quoted.
    written: &'a str,
    has_quotes: bool,
}

impl<'a> Cell<'a> {
    /// The text, unless it has a quotation mark.
    pub(crate) fn plain(self) -> Option<&'a str> {
        (!self.has_quotes).then_some(self.written)
    }

    /// What stands in the file, for a number or an error.
    pub(crate) fn written(self) -> &'a str {
        self.written
    }

    /// The text.
    pub fn text(self) -> Cow<'a, str> {
        match self.has_quotes {
            true => self.written.replace("\"\"", "\"").into(),
            false => self.written.into(),
        }
    }
}

/// The cells of a line, which has at least one. An error is the last item.
#[derive(Clone, Debug)]
pub struct Cells<'a> {
    /// What follows the last cell and its comma.
    rest: Option<&'a str>,
    /// Whether the line has a quotation mark at all.
    has_quotes: bool,
}

impl<'a> Cells<'a> {
    /// Those of a line without its end.
    pub fn of(line: &'a str) -> Self {
        Self { rest: Some(line), has_quotes: memchr(QUOTE, line.as_bytes()).is_some() }
    }

    /// The cell whose first quotation mark stands before `text`.
    fn quoted(&mut self, text: &'a str) -> Result<Cell<'a>, CellError> {
        let (mut end, mut has_quotes) = (0, false);
        let behind = loop {
            end += text[end..].find(QUOTE_CHAR).ok_or(CellError::Open)?;
            let behind = &text[end + 1..];
            if !behind.starts_with(QUOTE_CHAR) {
                break behind;
            }
            has_quotes = true;
            end += 2;
        };
        self.rest = match behind.strip_prefix(',') {
            None if !behind.is_empty() => return Err(CellError::Behind),
            rest => rest,
        };
        Ok(Cell { written: &text[..end], has_quotes })
    }
}

impl<'a> Iterator for Cells<'a> {
    type Item = Result<Cell<'a>, CellError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        if self.has_quotes
            && let Some(quoted) = rest.strip_prefix(QUOTE_CHAR)
        {
            return Some(self.quoted(quoted));
        }
        let (written, rest) = match rest.split_once(',') {
            Some((cell, rest)) => (cell, Some(rest)),
            None => (rest, None),
        };
        if self.has_quotes && written.contains(QUOTE_CHAR) {
            return Some(Err(CellError::Within));
        }
        self.rest = rest;
        Some(Ok(Cell { written, has_quotes: false }))
    }
}
