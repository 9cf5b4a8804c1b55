//! Pictures, decoded and resized by the host at native speed.
//!
//! ```no_run
//! # use gristmill_plugin::{image::{self, Pixels}, Failure, Request, Tensor};
//! # fn example(request: &Request) -> Result<Tensor, Failure> {
//! let photo = Pixels::decode(&request.body(), image::RGB)?;
//! let small = photo.resize_shorter(256, image::Filter::Bilinear)?.center_crop(224, 224)?;
//! Ok(small.to_tensor(&image::imagenet())?)
//! # }
//! ```
//!
//! A picture in base64, as a member of a JSON body. A data URL is read, too:
//!
//! ```no_run
//! # use gristmill_plugin::{image::{self, Pixels}, Blob, Failure, Request};
//! #[derive(serde::Deserialize)]
//! struct Body {
//!     image: String,
//! }
//!
//! # fn example(request: &Request) -> Result<Pixels, Failure> {
//! let body: Body = request.json()?;
//! let photo = Pixels::decode(&Blob::from_base64(&body.image)?, image::RGB)?;
//! # Ok(photo)
//! # }
//! ```

use crate::Dtype;
pub use crate::bindings::image::{
    Border, ChannelStatistics, Color, DecodeOptions, Filter, ImageError, Layout, Letterboxed,
    Pixels, Placement, TensorOptions,
};

/// Decode to three channels, upright.
pub const RGB: DecodeOptions = DecodeOptions { color: Color::Rgb, upright: true };

/// Decode to one channel of luma, upright.
pub const GRAY: DecodeOptions = DecodeOptions { color: Color::Gray, upright: true };

/// The mean of each channel of ImageNet's pictures: red, green, blue, of values from 0 to 1.
pub const IMAGENET_MEAN: [f32; 3] = [0.485, 0.456, 0.406];

/// The standard deviation of each channel of ImageNet's pictures: red, green, blue, of values from
/// 0 to 1.
pub const IMAGENET_STD: [f32; 3] = [0.229, 0.224, 0.225];

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

/// A float32 tensor [1, 3, height, width] of red, green and blue, normalised with
/// [`IMAGENET_MEAN`] and [`IMAGENET_STD`].
pub fn imagenet() -> TensorOptions {
    TensorOptions { mean: IMAGENET_MEAN.into(), std: IMAGENET_STD.into(), ..nchw(Color::Rgb) }
}

/// `pixels` in the middle of a picture of `width` and `height`, as large as it fits, the rest
/// filled with `fill` (one value per channel; YOLO uses `[114; 3]`).
///
/// ```no_run
/// # use gristmill_plugin::{image::{self, Pixels}, Failure};
/// # fn example(photo: &Pixels) -> Result<(), Failure> {
/// let boxed = image::letterbox(photo, 640, 640, &[114; 3])?;
/// let input = boxed.pixels.to_tensor(&image::nchw(image::Color::Rgb))?;
/// // The model's box, of the 640 by 640 pixels, becomes a box of the photo.
/// let on_photo = boxed.placement.to_original([100.0, 50.0, 200.0, 150.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ImageError::InvalidArgument`] if a side is 0 or `fill` has another number of values than the
/// picture has channels; [`ImageError::TooLarge`] if the result is over the host's limits.
pub fn letterbox(
    pixels: &Pixels,
    width: u32,
    height: u32,
    fill: &[u8],
) -> Result<Letterboxed, ImageError> {
    pixels.letterbox(width, height, Filter::Bilinear, fill)
}

impl Placement {
    /// The box `[x1, y1, x2, y2]` of the letterboxed picture, as a box of the original one, in
    /// pixels, cut to its edges.
    pub fn to_original(&self, [x1, y1, x2, y2]: [f32; 4]) -> [f32; 4] {
        let x = |x: f32| ((x - self.left as f32) / self.scale_x).clamp(0.0, self.width as f32);
        let y = |y: f32| ((y - self.top as f32) / self.scale_y).clamp(0.0, self.height as f32);
        [x(x1), y(y1), x(x2), y(y2)]
    }

    /// The box `[x1, y1, x2, y2]` of the original picture, as a box of the letterboxed one, in
    /// pixels.
    pub fn to_letterboxed(&self, [x1, y1, x2, y2]: [f32; 4]) -> [f32; 4] {
        let x = |x: f32| x * self.scale_x + self.left as f32;
        let y = |y: f32| y * self.scale_y + self.top as f32;
        [x(x1), y(y1), x(x2), y(y2)]
    }
}

#[cfg(test)]
mod tests {
    use super::{Color, IMAGENET_MEAN, Pixels, Placement, imagenet};

    #[test]
    fn boxes_go_to_the_original_and_back() {
        // 640x480 in 416x416: scale 0.65, 52 rows above.
        let placement =
            Placement { scale_x: 0.65, scale_y: 0.65, left: 0, top: 52, width: 640, height: 480 };
        let original = placement.to_original([65.0, 52.0, 416.0, 182.0]);
        assert_eq!(original.map(f32::round), [100.0, 0.0, 640.0, 200.0]);
        assert_eq!(placement.to_letterboxed(original).map(f32::round), [65.0, 52.0, 416.0, 182.0]);
        // A box that reaches into the border ends at the picture's edge.
        assert_eq!(placement.to_original([-5.0, 0.0, 999.0, 999.0]), [0.0, 0.0, 640.0, 480.0]);
    }

    #[test]
    fn the_centre_is_cropped() {
        let pixels = Pixels::from_bytes(4, 3, Color::Gray, &(0..12).collect::<Vec<_>>()).unwrap();
        assert_eq!(pixels.center_crop(2, 2).unwrap().data(), [1, 2, 5, 6]);
        let refused = pixels.center_crop(5, 1).unwrap_err();
        assert!(format!("{refused:?}").contains("crop of 5x1 at (0, 1) is not within 4x3"));
    }

    #[test]
    fn imagenet_normalises() {
        let mean = IMAGENET_MEAN.map(|mean| (mean * 255.0).round() as u8);
        let tensor =
            Pixels::from_bytes(1, 1, Color::Rgb, &mean).unwrap().to_tensor(&imagenet()).unwrap();
        assert_eq!(tensor.dims(), [1, 3, 1, 1]);
        let view = tensor.view::<f32>().unwrap();
        assert!(view.as_slice().iter().all(|value| value.abs() < 0.01), "{:?}", view.as_slice());
    }
}
