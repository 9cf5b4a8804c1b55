//! Reading JSON with many numbers.
//!
//! [`from_slice`] gives what `serde_json::from_slice` gives. It reads the frequent forms itself, in
//! one pass, and leaves the rare ones (escapes, exponents, more than 18 digits, enums) to
//! serde_json. If something does not fit, serde_json reads all of it again and says what.
//! Then `T::deserialize` runs twice.
//! serde_json's features `float_roundtrip` and `arbitrary_precision` have no effect on the numbers
//! that it reads itself: use `serde_json::from_slice` where you need them.
//!
//! For ten items of 32 numbers (3 KB), alone in wasmtime: serde_json takes 10 us, this 5. In
//! a fresh instance simd-json was slower than serde_json, because its tape touches more memory.
//! sonic-rs needs random numbers, which plugins without WASI do not have.

mod key;
mod number;
mod reader;

use std::cell::Cell;

use serde::Deserialize;

use self::reader::Reader;

/// The value that `json` has.
///
/// # Errors
/// Those of `serde_json::from_slice`: `json` is not JSON, or does not fit `T`. They say where.
pub fn from_slice<'a, T: Deserialize<'a>>(json: &'a [u8]) -> serde_json::Result<T> {
    quickly(json, |reader| T::deserialize(reader)).map_or_else(|| serde_json::from_slice(json), Ok)
}

/// The value that the reader gives; none if it declined a part, also where `read` went on after
/// that.
fn quickly<'a, T>(
    json: &'a [u8],
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, Declined>,
) -> Option<T> {
    // A value can be read while another one is: a text can have JSON in it.
    let outer = DECLINED.replace(false);
    let mut reader = Reader::new(json);
    let value = read(&mut reader).ok();
    let has_declined = DECLINED.replace(outer);
    value.filter(|_| reader.is_at_end() && !has_declined)
}

thread_local! {
    /// Whether the reader has declined something.
    static DECLINED: Cell<bool> = const { Cell::new(false) };
}

fn has_declined() -> bool {
    DECLINED.get()
}

fn declined() -> Declined {
    DECLINED.set(true);
    Declined(())
}

/// The reader cannot read this: either it has a rare form, or it is wrong. serde_json decides.
#[derive(Debug)]
struct Declined(());

impl std::error::Error for Declined {}

impl std::fmt::Display for Declined {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("left to serde_json")
    }
}

impl serde::de::Error for Declined {
    fn custom<T: std::fmt::Display>(_message: T) -> Self {
        // Of a visitor, which may try something else: those of untagged enums do.
        Self(())
    }
}

#[cfg(test)]
mod tests;
