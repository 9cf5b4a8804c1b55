//! Pictures, tensors and blobs that a preprocessor keeps for the postprocessor of the same request.
//! They stay with the host: nothing is copied.
//!
//! ```no_run
//! # use gristmill_plugin::image::{self, Encoding, Pixels, Shape};
//! # use gristmill_plugin::{keep, Failure, Prepared, Request, Response};
//! // In `preprocess`:
//! # fn preprocess(request: &Request) -> Result<Prepared, Failure> {
//! let photo = Pixels::decode(&request.body(), image::RGB)?;
//! let boxed = image::letterbox(&photo, 640, 640, &[114; 3])?;
//! let input = boxed.pixels.to_tensor(&image::nchw(image::Color::Rgb))?;
//! Prepared::new().input("images", input).keep("photo", photo)
//! # }
//! // In `postprocess`:
//! # fn postprocess(shapes: &[Shape]) -> Result<Response, Failure> {
//! let photo = keep::pixels("photo")?;
//! let jpeg = photo.draw(shapes)?.encode(Encoding::Jpeg(85))?;
//! Ok(Response::new("image/jpeg", image::bytes(&jpeg)))
//! # }
//! ```
//!
//! A request keeps at most 256, under names of at most 1024 bytes. Until the request has ended,
//! the memory that the host held for the preprocessor counts against the tenant's. A handler keeps
//! nothing.

use crate::bindings::keep as host;
pub use crate::bindings::keep::Kept;
use crate::image::Pixels;
use crate::{Blob, Failure, Prepared, Tensor};

impl From<Pixels> for Kept {
    fn from(pixels: Pixels) -> Self {
        Self::Pixels(pixels)
    }
}

impl From<Tensor> for Kept {
    fn from(tensor: Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

impl From<Blob> for Kept {
    fn from(blob: Blob) -> Self {
        Self::Blob(blob)
    }
}

impl Prepared {
    /// With `value` for the postprocessor, which takes it with [`pixels`], [`tensor`] or [`blob`].
    ///
    /// # Errors
    /// [`Failure::Internal`] if the name is too long, or too much is kept.
    pub fn keep(self, name: &str, value: impl Into<Kept>) -> Result<Self, Failure> {
        let kept = host::put(name, value.into());
        kept.map_err(|why| Failure::internal(format!("keeping {name:?}: {why}")))?;
        Ok(self)
    }
}

/// The picture that the preprocessor kept under this name.
///
/// # Errors
/// [`Failure::Internal`] if it kept none, or it was taken before.
pub fn pixels(name: &str) -> Result<Pixels, Failure> {
    match host::take(name) {
        Some(Kept::Pixels(pixels)) => Ok(pixels),
        other => Err(missing(name, "picture", other)),
    }
}

/// The tensor that the preprocessor kept under this name.
///
/// # Errors
/// [`Failure::Internal`] if it kept none, or it was taken before.
pub fn tensor(name: &str) -> Result<Tensor, Failure> {
    match host::take(name) {
        Some(Kept::Tensor(tensor)) => Ok(tensor),
        other => Err(missing(name, "tensor", other)),
    }
}

/// The blob that the preprocessor kept under this name.
///
/// # Errors
/// [`Failure::Internal`] if it kept none, or it was taken before.
pub fn blob(name: &str) -> Result<Blob, Failure> {
    match host::take(name) {
        Some(Kept::Blob(blob)) => Ok(blob),
        other => Err(missing(name, "blob", other)),
    }
}

fn missing(name: &str, wanted: &str, found: Option<Kept>) -> Failure {
    let found = match found {
        Some(Kept::Pixels(_)) => "a picture",
        Some(Kept::Tensor(_)) => "a tensor",
        Some(Kept::Blob(_)) => "a blob",
        None => "nothing",
    };
    Failure::internal(format!("{found} is kept as {name:?}, not a {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::{blob, pixels};
    use crate::image::{Color, Pixels};
    use crate::{Failure, Prepared};

    #[test]
    fn what_is_kept_is_taken_once() {
        let picture = Pixels::from_bytes(1, 1, Color::Gray, &[7]).unwrap();
        Prepared::new().keep("photo", picture).unwrap();
        assert_eq!(pixels("photo").unwrap().data(), [7]);
        let Err(Failure::Internal(text)) = pixels("photo") else { panic!("it is still there") };
        assert_eq!(text, "nothing is kept as \"photo\", not a picture");
        let picture = Pixels::from_bytes(1, 1, Color::Gray, &[7]).unwrap();
        Prepared::new().keep("photo", picture).unwrap();
        let Err(Failure::Internal(text)) = blob("photo") else { panic!("a picture is no blob") };
        assert_eq!(text, "a picture is kept as \"photo\", not a blob");
    }
}
