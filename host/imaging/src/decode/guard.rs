//! Running decoders, which end by a panic: where they fail on an image, and where the caller's
//! check refuses ([`Clock`](super::clock::Clock)). Some cannot be ended by an error.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::options::malformed;
use crate::error::{ImageError, Stopped};

#[cfg(panic = "abort")]
compile_error!("decoders are ended by unwinding: build with panic = \"unwind\"");

thread_local! {
    static IS_DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs a decoder, so that its panic is an error of an image. A panic hook
/// asks, because any client can send such an image.
pub fn is_decoding() -> bool {
    IS_DECODING.get()
}

/// The result of `decode`. Its panic is an error of the image.
pub(super) fn guarded<T>(decode: impl FnOnce() -> Result<T, ImageError>) -> Result<T, ImageError> {
    IS_DECODING.set(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    IS_DECODING.set(false);
    decoded.unwrap_or_else(|panic| {
        let stopped = panic.downcast_ref::<Stopped>().map(|stopped| (*stopped).into());
        Err(stopped.unwrap_or_else(|| malformed("the decoder failed on it")))
    })
}
