//! Reading JSON with many numbers.
//!
//! [`from_slice`] gives what `serde_json::from_slice` gives. It reads the frequent forms itself, in
//! one pass, and leaves the rare ones (escapes, exponents, more than 18 digits, enums) to
//! serde_json. If something does not fit, serde_json reads all of it again and says what.
//! serde_json's features `float_roundtrip` and `arbitrary_precision` have no effect on the numbers
//! that it reads itself: use `serde_json::from_slice` where you need them.
//!
//! For ten items of 32 numbers (3 KB), alone in wasmtime: serde_json takes 10 us, this 5. In
//! a fresh instance simd-json was slower than serde_json, because its tape touches more memory.
//! sonic-rs needs random numbers, which plugins without WASI do not have.

mod key;
mod number;
mod reader;

use serde::Deserialize;

use self::reader::Reader;

/// The value that `json` has.
///
/// # Errors
/// Those of `serde_json::from_slice`: `json` is not JSON, or does not fit `T`. They say where.
pub fn from_slice<'a, T: Deserialize<'a>>(json: &'a [u8]) -> serde_json::Result<T> {
    let mut reader = Reader::new(json);
    match T::deserialize(&mut reader) {
        Ok(value) if reader.is_at_end() => Ok(value),
        _ => serde_json::from_slice(json),
    }
}

/// The reader cannot read this: either it has a rare form, or it is wrong. serde_json decides.
#[derive(Debug)]
struct Declined;

impl std::error::Error for Declined {}

impl std::fmt::Display for Declined {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("left to serde_json")
    }
}

impl serde::de::Error for Declined {
    fn custom<T: std::fmt::Display>(_message: T) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests;
