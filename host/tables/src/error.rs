//! Why a file is not a table, and what the caller of long work brings along.

/// The work was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped")]
pub struct Stopped;

/// Why a file or an argument cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The file is not a table, or is over a limit. Names the line and the column, or the part of
    /// the header.
    #[error("{0}")]
    Malformed(String),
    /// An argument does not fit the file.
    #[error("{0}")]
    InvalidArgument(String),
    /// The caller's check refused to go on.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Whether the work may go on.
pub(crate) type Check<'a> = &'a dyn Fn() -> Result<(), Stopped>;

/// What the caller of long work brings along.
pub struct Work<'a> {
    /// Is asked about every millisecond, between lines and pages.
    pub check: Check<'a>,
    /// Is told how many bytes the table takes besides its file, before it takes them.
    pub reserve: &'a mut dyn FnMut(usize) -> Result<(), Stopped>,
}

/// Maximum characters of a part of the file within a message.
const SHOWN_CHARS_MAX: usize = 64;

/// The beginning of a part of the file, for a message.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_owned(),
    }
}
