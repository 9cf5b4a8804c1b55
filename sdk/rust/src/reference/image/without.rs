//! What decoding, encoding and resizing answer without the feature `testing-images`.

use super::{Blob, DecodeOptions, Encoding, Filter, ImageError, Pixels};

fn missing(what: &str) -> ImageError {
    ImageError::InvalidArgument(format!(
        "{what} outside of the sandbox needs the feature \"testing-images\" of gristmill-plugin: \
         name it in [dev-dependencies]"
    ))
}

pub(super) fn decode(_: &[u8], _: DecodeOptions) -> Result<Pixels, ImageError> {
    Err(missing("decoding a picture"))
}

pub(super) fn encode(_: &Pixels, _: Encoding) -> Result<Blob, ImageError> {
    Err(missing("encoding a picture"))
}

pub(super) fn resize(_: &Pixels, _: u32, _: u32, _: Filter) -> Result<Pixels, ImageError> {
    Err(missing("resizing a picture"))
}
