//! Pictures, decoded and resized by the host at native speed.
//!
//! ```no_run
//! # use gristmill_plugin::{image::{self, Pixels}, Failure, Request, Tensor};
//! # fn example(request: &Request) -> Result<Tensor, Failure> {
//! let photo = Pixels::decode(&request.body(), image::RGB)?;
//! let small = photo.resize(224, 224, image::Filter::Bilinear)?;
//! Ok(small.to_tensor(&image::nchw(image::Color::Rgb))?)
//! # }
//! ```

use crate::Dtype;
pub use crate::bindings::image::{
    Border, Color, DecodeOptions, Filter, ImageError, Layout, Letterboxed, Pixels, Placement,
    TensorOptions,
};

/// Decode to three channels, upright.
pub const RGB: DecodeOptions = DecodeOptions { color: Color::Rgb, upright: true };

/// Decode to one channel of luma, upright.
pub const GRAY: DecodeOptions = DecodeOptions { color: Color::Gray, upright: true };

/// A float32 tensor [1, channels, height, width] of values from 0 to 1.
pub fn nchw(color: Color) -> TensorOptions {
    TensorOptions {
        dtype: Dtype::Float32,
        layout: Layout::Nchw,
        color,
        scale: 1.0 / 255.0,
        mean: Vec::new(),
        std: Vec::new(),
    }
}
