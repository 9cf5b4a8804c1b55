//! Pictures, decoded and resized by the host at native speed.
//!
//! ```no_run
//! # use gristmill_plugin::{image::{self, Filter, Pixels, ResizedSize}, Failure, Request, Tensor};
//! # fn example(request: &Request) -> Result<Tensor, Failure> {
//! let size = ResizedSize::Shorter(256);
//! let photo = Pixels::decode_resized(&request.body(), image::RGB, size, Filter::Bilinear)?;
//! Ok(photo.center_crop(224, 224)?.to_tensor(&image::imagenet())?)
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

pub use crate::bindings::image::{
    Border, ChannelStatistics, Color, CropBox, DecodeOptions, Encoding, Filter, ImageError, Label,
    Layout, Letterboxed, Pixels, Placement, Polygon, Rectangle, ResizedSize, Shape, TensorOptions,
};
use crate::{Blob, Dtype};

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

/// The outline of the box `[x1, y1, x2, y2]` in pixels, rounded to the nearest, for
/// [`Pixels::draw`]. `color` is red, green, blue; `thickness` is 1 to 64 pixels.
///
/// ```no_run
/// # use gristmill_plugin::{image::{self, Encoding, Pixels}, Failure, Response};
/// # fn example(photo: &Pixels, bounds: [f32; 4]) -> Result<Response, Failure> {
/// let red = [255, 0, 0];
/// let shapes =
///     [image::rectangle(bounds, red, 3), image::label([bounds[0], bounds[1]], "cat", red, 2)];
/// let jpeg = photo.draw(&shapes)?.encode(Encoding::Jpeg(85))?;
/// Ok(Response::new("image/jpeg", image::bytes(&jpeg)))
/// # }
/// ```
pub fn rectangle([x1, y1, x2, y2]: [f32; 4], color: [u8; 3], thickness: u32) -> Shape {
    let (x, y) = (pixel(x1), pixel(y1));
    let length =
        |start: i32, end: f32| u32::try_from(i64::from(pixel(end)) - i64::from(start)).unwrap_or(0);
    let (width, height) = (length(x, x2), length(y, y2));
    Shape::Rectangle(Rectangle { x, y, width, height, thickness, color: color.into() })
}

/// The outline of a polygon with these points `[x, y]` in pixels, rounded to the nearest, for
/// [`Pixels::draw`]. `color` is red, green, blue; `thickness` is 1 to 64 pixels.
pub fn polygon(points: &[[f32; 2]], color: [u8; 3], thickness: u32) -> Shape {
    let points = points.iter().map(|[x, y]| (pixel(*x), pixel(*y))).collect();
    Shape::Polygon(Polygon { points, thickness, color: color.into() })
}

/// A line of text whose upper left corner is `[x, y]` in pixels, rounded to the nearest, for
/// [`Pixels::draw`]. `color` is red, green, blue. Its characters are squares of 8 * `size` pixels.
pub fn label([x, y]: [f32; 2], text: &str, color: [u8; 3], size: u32) -> Shape {
    Shape::Label(Label { x: pixel(x), y: pixel(y), text: text.into(), size, color: color.into() })
}

/// The box `[x1, y1, x2, y2]` in pixels, rounded to the nearest and cut to the edges of `pixels`,
/// for [`Pixels::crop_many`]. None if nothing is left of it.
pub fn crop_box(pixels: &Pixels, [x1, y1, x2, y2]: [f32; 4]) -> Option<CropBox> {
    // Saturates.
    let edge = |value: f32, side: u32| ((value + 0.5).floor() as u32).min(side);
    let (width, height) = (pixels.width(), pixels.height());
    let (x, y, right, bottom) =
        (edge(x1, width), edge(y1, height), edge(x2, width), edge(y2, height));
    let is_empty = x >= right || y >= bottom;
    (!is_empty).then(|| CropBox { x, y, width: right - x, height: bottom - y })
}

/// All bytes of a blob, as of an encoded picture for the body of a response.
pub fn bytes(blob: &Blob) -> Vec<u8> {
    blob.read(0, blob.len())
}

/// The nearest pixel. It saturates.
fn pixel(value: f32) -> i32 {
    (value + 0.5).floor() as i32
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
    use super::{
        Color, CropBox, IMAGENET_MEAN, Pixels, Placement, Rectangle, Shape, crop_box, imagenet,
        rectangle,
    };

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
    fn boxes_of_floats_are_rounded() {
        let of = |x, y, width, height| {
            let color = (1, 2, 3);
            Shape::Rectangle(Rectangle { x, y, width, height, thickness: 2, color })
        };
        let rounded = |bounds| rectangle(bounds, [1, 2, 3], 2);
        assert_eq!(rounded([0.4, -1.5, 3.5, 7.0]), of(0, -1, 4, 8));
        assert_eq!(rounded([5.0, 5.0, 4.0, f32::NAN]), of(5, 5, 0, 0));
        let pixels = Pixels::from_bytes(4, 3, Color::Gray, &[0; 12]).unwrap();
        let cropped = crop_box(&pixels, [-7.0, 0.6, 2.4, 99.0]);
        assert_eq!(cropped, Some(CropBox { x: 0, y: 1, width: 2, height: 2 }));
        assert_eq!(crop_box(&pixels, [4.0, 0.0, 9.0, 3.0]), None);
        assert_eq!(crop_box(&pixels, [f32::NAN, 0.0, f32::NAN, 3.0]), None);
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
