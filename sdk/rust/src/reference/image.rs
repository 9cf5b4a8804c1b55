//! `image`: pictures in this process's memory.
//!
//! Decoding, encoding and resizing need the feature `testing-images`. Everything else works without
//! it. Labels have no font: each character but a space is a box.

mod draw;
mod frame;
mod to_tensor;

#[cfg(feature = "testing-images")]
mod decode;
#[cfg(feature = "testing-images")]
mod encode;
#[cfg(feature = "testing-images")]
mod resize;
#[cfg(not(feature = "testing-images"))]
mod without;
#[cfg(not(feature = "testing-images"))]
use self::without as decode;
#[cfg(not(feature = "testing-images"))]
use self::without as encode;
#[cfg(not(feature = "testing-images"))]
use self::without as resize;

use std::fmt;
use std::sync::Arc;

use super::tensors::{Dtype, Tensor};
use super::types::Blob;

/// The most pixels of a side, as in the host.
const SIDE_MAX: u32 = 65_535;

/// The most pixels of a picture: the host's default.
const PIXELS_MAX: u64 = 50_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Color {
    Rgb,
    Bgr,
    Gray,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layout {
    Nchw,
    Nhwc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Filter {
    Nearest,
    Bilinear,
    Bicubic,
    Lanczos3,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ImageError {
    UnknownFormat,
    Malformed(String),
    TooLarge(String),
    InvalidArgument(String),
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for ImageError {}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecodeOptions {
    pub color: Color,
    pub upright: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TensorOptions {
    pub dtype: Dtype,
    pub layout: Layout,
    pub color: Color,
    pub scale: f32,
    pub mean: Vec<f32>,
    pub std: Vec<f32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placement {
    pub scale_x: f32,
    pub scale_y: f32,
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

#[derive(Debug)]
pub struct Letterboxed {
    pub pixels: Pixels,
    pub placement: Placement,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Border {
    pub left: u32,
    pub top: u32,
    pub right: u32,
    pub bottom: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelStatistics {
    pub min: u8,
    pub max: u8,
    pub mean: f32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Encoding {
    Jpeg(u8),
    Png,
    WebpLossless,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResizedSize {
    Exact((u32, u32)),
    Shorter(u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CropBox {
    pub x: u32,
    pub y: u32,
    pub width: u32,
    pub height: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rectangle {
    pub x: i32,
    pub y: i32,
    pub width: u32,
    pub height: u32,
    pub thickness: u32,
    pub color: (u8, u8, u8),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    pub points: Vec<(i32, i32)>,
    pub thickness: u32,
    pub color: (u8, u8, u8),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    pub x: i32,
    pub y: i32,
    pub text: String,
    pub size: u32,
    pub color: (u8, u8, u8),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Rectangle(Rectangle),
    Polygon(Polygon),
    Label(Label),
}

/// The most boxes of `crop_many`, as in the host.
const BOXES_MAX: usize = 1024;

/// A picture of 8 bits a channel, row-major, channels interleaved.
#[derive(Debug)]
pub struct Pixels {
    width: u32,
    height: u32,
    /// `Rgb` or `Gray`.
    color: Color,
    data: Arc<[u8]>,
}

impl Pixels {
    pub fn decode(data: &Blob, options: DecodeOptions) -> Result<Self, ImageError> {
        decode::decode(&data.0, options)
    }

    /// The reference host has no lenient decoder: it refuses damaged files here, too.
    pub fn decode_leniently(data: &Blob, options: DecodeOptions) -> Result<Self, ImageError> {
        decode::decode(&data.0, options)
    }

    /// The reference host decodes at the full size.
    pub fn decode_resized(
        data: &Blob,
        options: DecodeOptions,
        size: ResizedSize,
        filter: Filter,
    ) -> Result<Self, ImageError> {
        let pixels = Self::decode(data, options)?;
        match size {
            ResizedSize::Exact((width, height)) => pixels.resize(width, height, filter),
            ResizedSize::Shorter(size) => pixels.resize_shorter(size, filter),
        }
    }

    /// The reference host decodes at the full size.
    #[allow(clippy::too_many_arguments, reason = "those of the contract")]
    pub fn decode_letterboxed(
        data: &Blob,
        options: DecodeOptions,
        width: u32,
        height: u32,
        filter: Filter,
        fill: &[u8],
    ) -> Result<Letterboxed, ImageError> {
        Self::decode(data, options)?.letterbox(width, height, filter, fill)
    }

    pub fn from_bytes(
        width: u32,
        height: u32,
        color: Color,
        data: &[u8],
    ) -> Result<Self, ImageError> {
        check_size(width, height)?;
        let color = if color == Color::Gray { Color::Gray } else { Color::Rgb };
        let expected = u64::from(width) * u64::from(height) * channels(color) as u64;
        if data.len() as u64 != expected || expected == 0 {
            let given = data.len();
            return Err(ImageError::InvalidArgument(format!(
                "{given} bytes are given, but {width}x{height} pixels need {expected}"
            )));
        }
        Ok(Self { width, height, color, data: data.into() })
    }

    pub fn width(&self) -> u32 {
        self.width
    }

    pub fn height(&self) -> u32 {
        self.height
    }

    pub fn color(&self) -> Color {
        self.color
    }

    pub fn resize(&self, width: u32, height: u32, filter: Filter) -> Result<Self, ImageError> {
        if width == 0 || height == 0 {
            let why = format!("cannot resize to {width}x{height}");
            return Err(ImageError::InvalidArgument(why));
        }
        check_size(width, height)?;
        if (width, height) == (self.width, self.height) {
            return Ok(self.copy());
        }
        resize::resize(self, width, height, filter)
    }

    pub fn resize_shorter(&self, size: u32, filter: Filter) -> Result<Self, ImageError> {
        if size == 0 {
            return self.resize(0, 0, filter);
        }
        let (width, height) = frame::with_shorter_side((self.width, self.height), size);
        self.resize(width, height, filter)
    }

    pub fn pad(&self, border: Border, fill: &[u8]) -> Result<Self, ImageError> {
        frame::pad(self, border, fill)
    }

    pub fn letterbox(
        &self,
        width: u32,
        height: u32,
        filter: Filter,
        fill: &[u8],
    ) -> Result<Letterboxed, ImageError> {
        frame::letterbox(self, (width, height), filter, fill)
    }

    pub fn crop(&self, x: u32, y: u32, width: u32, height: u32) -> Result<Self, ImageError> {
        frame::crop(self, (x, y), (width, height))
    }

    pub fn center_crop(&self, width: u32, height: u32) -> Result<Self, ImageError> {
        let corner = frame::middle((self.width, self.height), (width, height));
        frame::crop(self, corner, (width, height))
    }

    pub fn crop_many(
        &self,
        boxes: &[CropBox],
        size: Option<(u32, u32)>,
        filter: Filter,
    ) -> Result<Vec<Self>, ImageError> {
        if boxes.len() > BOXES_MAX {
            let given = boxes.len();
            let why = format!("{given} boxes are given; the limit is {BOXES_MAX}");
            return Err(ImageError::InvalidArgument(why));
        }
        let part = |(index, part): (usize, &CropBox)| {
            let of_box = |error: ImageError| match error {
                ImageError::InvalidArgument(why) => {
                    ImageError::InvalidArgument(format!("boxes[{index}]: {why}"))
                }
                other => other,
            };
            self.crop(part.x, part.y, part.width, part.height).map_err(of_box)
        };
        let parts = boxes.iter().enumerate().map(part).collect::<Result<Vec<_>, _>>()?;
        match size {
            Some((width, height)) => {
                parts.iter().map(|part| part.resize(width, height, filter)).collect()
            }
            None => Ok(parts),
        }
    }

    pub fn draw(&self, shapes: &[Shape]) -> Result<Self, ImageError> {
        draw::draw(self, shapes)
    }

    pub fn encode(&self, format: Encoding) -> Result<Blob, ImageError> {
        if let Encoding::Jpeg(quality) = format
            && !(1..=100).contains(&quality)
        {
            let why = format!("the quality of a JPEG is 1 to 100, not {quality}");
            return Err(ImageError::InvalidArgument(why));
        }
        encode::encode(self, format)
    }

    pub fn to_tensor(&self, options: &TensorOptions) -> Result<Tensor, ImageError> {
        to_tensor::to_tensor(self, options)
    }

    pub fn statistics(&self) -> Vec<ChannelStatistics> {
        let of = |channel| {
            let values = || self.data.iter().skip(channel).step_by(self.channels()).copied();
            let sum: u64 = values().map(u64::from).sum();
            let count = values().count() as f64;
            ChannelStatistics {
                min: values().min().unwrap_or(0),
                max: values().max().unwrap_or(0),
                mean: (sum as f64 / count) as f32,
            }
        };
        (0..self.channels()).map(of).collect()
    }

    pub fn data(&self) -> Vec<u8> {
        self.data.to_vec()
    }

    fn copy(&self) -> Self {
        Self { data: self.data.clone(), ..*self }
    }

    fn channels(&self) -> usize {
        channels(self.color)
    }
}

fn channels(color: Color) -> usize {
    if color == Color::Gray { 1 } else { 3 }
}

fn check_size(width: u32, height: u32) -> Result<(), ImageError> {
    let over = |limit: String| {
        Err(ImageError::TooLarge(format!("{width}x{height} is over the limit of {limit}")))
    };
    if width.max(height) > SIDE_MAX {
        return over(format!("{SIDE_MAX} pixels for a side"));
    }
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return over(format!("{PIXELS_MAX} pixels"));
    }
    Ok(())
}

/// The ITU-R BT.601 luma of a pixel, rounded.
fn luma([red, green, blue]: [u8; 3]) -> u8 {
    let [red, green, blue] = [red, green, blue].map(u32::from);
    ((red * 299 + green * 587 + blue * 114 + 500) / 1000) as u8
}

#[cfg(test)]
mod tests;
