//! Running the library, which panics where it does not expect what a file has.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::TextError;

#[cfg(panic = "abort")]
compile_error!("panics of the library are caught: build with panic = \"unwind\"");

thread_local! {
    static IS_TOKENIZING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs a tokenizer, so that its panic is an error of a file or a text. A panic
/// hook asks, because any tenant can upload such a file.
pub fn is_tokenizing() -> bool {
    IS_TOKENIZING.get()
}

/// The result of `work`. Its panic is an error, which says that the library failed on `what`.
pub(crate) fn guarded<T>(
    what: &str,
    work: impl FnOnce() -> Result<T, TextError>,
) -> Result<T, TextError> {
    IS_TOKENIZING.set(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_TOKENIZING.set(false);
    done.unwrap_or_else(|_| {
        Err(TextError::Malformed(format!("the library of tokenizers failed on {what}")))
    })
}
