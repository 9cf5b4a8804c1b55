//! Why a file or a text cannot be used.

/// The work was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped")]
pub struct Stopped;

/// Why a file or a text cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The file is not a tokenizer, or not one that runs here. Names the part that is wrong.
    #[error("{0}")]
    Malformed(String),
    /// Something is over a limit. Says what, and the limit.
    #[error("{0}")]
    TooLarge(String),
    /// An argument is out of range.
    #[error("{0}")]
    InvalidArgument(String),
    /// The caller's check refused to go on.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Maximum characters of a text of others within a message.
const SHOWN_CHARS_MAX: usize = 200;

/// The beginning of a text, for a message.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_owned(),
    }
}

impl TextError {
    /// The library's error in `part`. Errors of this crate come back through the library as they
    /// are.
    pub(crate) fn of(part: &str, error: tokenizers::Error) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(error) => return *error,
            Err(error) => error,
        };
        match error.downcast::<Stopped>() {
            Ok(stopped) => (*stopped).into(),
            Err(error) => Self::Malformed(format!("{part}: {}", shown(&error.to_string()))),
        }
    }

    /// What serde says of `part`.
    pub(crate) fn of_json(part: &str, error: &serde_json::Error) -> Self {
        Self::Malformed(format!("{part}: {}", shown(&error.to_string())))
    }
}
