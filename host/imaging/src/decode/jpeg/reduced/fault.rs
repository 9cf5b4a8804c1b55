//! What is wrong with a file.

use crate::decode::options::malformed;
use crate::error::ImageError;

pub(super) fn damaged() -> ImageError {
    malformed("its tables or its data are damaged")
}

pub(super) fn ends_early() -> ImageError {
    malformed("the data end before the picture is full")
}
