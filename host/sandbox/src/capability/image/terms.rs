//! The contract's terms and those of `gristmill_imaging`.

use gristmill_imaging::{self as imaging, ImageError, Rect, Size};

use super::bindings::wit;
use crate::capability::tensors::dtype_of;
use crate::meter::CpuExhausted;

/// The number of bytes that can be read in the time of estimating a line, and of looking at a byte
/// of a label.
const POINT_BYTES: usize = 64;
const TEXT_BYTE_BYTES: usize = 8;

/// Operations, for texts.
pub(super) const RESIZING: &str = "resizing";
pub(super) const PADDING: &str = "padding";
pub(super) const CROPPING: &str = "cropping";

/// A size that is refused, as that of a side of no pixels.
pub(super) const NOTHING: Size = Size { width: 0, height: 0 };

pub(super) fn filter_of(filter: wit::Filter) -> imaging::Filter {
    match filter {
        wit::Filter::Nearest => imaging::Filter::Nearest,
        wit::Filter::Bilinear => imaging::Filter::Bilinear,
        wit::Filter::Bicubic => imaging::Filter::Bicubic,
        wit::Filter::Lanczos3 => imaging::Filter::Lanczos3,
    }
}

pub(super) fn encoding_of(format: wit::Encoding) -> imaging::Encoding {
    match format {
        wit::Encoding::Jpeg(quality) => imaging::Encoding::Jpeg { quality },
        wit::Encoding::Png => imaging::Encoding::Png,
        wit::Encoding::WebpLossless => imaging::Encoding::WebpLossless,
    }
}

pub(super) fn rect_of(part: wit::CropBox) -> Rect {
    let wit::CropBox { x, y, width, height } = part;
    Rect { x, y, size: Size { width, height } }
}

pub(super) fn shape_of(shape: wit::Shape) -> imaging::Shape {
    match shape {
        wit::Shape::Rectangle(shape) => imaging::Shape::Rectangle(imaging::Rectangle {
            x: shape.x,
            y: shape.y,
            width: shape.width,
            height: shape.height,
            thickness: shape.thickness,
            color: shape.color.into(),
        }),
        wit::Shape::Polygon(shape) => imaging::Shape::Polygon(imaging::Polygon {
            points: shape.points,
            thickness: shape.thickness,
            color: shape.color.into(),
        }),
        wit::Shape::Label(shape) => imaging::Shape::Label(imaging::Label {
            x: shape.x,
            y: shape.y,
            text: shape.text,
            size: shape.size,
            color: shape.color.into(),
        }),
    }
}

/// The number of bytes that can be read in the time of estimating what it costs to draw `shapes`.
pub(super) fn bytes_like(shapes: &[wit::Shape]) -> usize {
    let bytes = |shape: &wit::Shape| match shape {
        wit::Shape::Polygon(shape) => shape.points.len().saturating_mul(POINT_BYTES),
        wit::Shape::Label(shape) => shape.text.len().saturating_mul(TEXT_BYTE_BYTES),
        wit::Shape::Rectangle(_) => 0,
    };
    shapes.iter().map(bytes).fold(size_of_val(shapes), usize::saturating_add)
}

pub(super) fn options_of(options: wit::TensorOptions) -> imaging::TensorOptions {
    imaging::TensorOptions {
        dtype: dtype_of(options.dtype),
        layout: match options.layout {
            wit::Layout::Nchw => imaging::Layout::Nchw,
            wit::Layout::Nhwc => imaging::Layout::Nhwc,
        },
        channels: match options.color {
            wit::Color::Rgb => imaging::Channels::Rgb,
            wit::Color::Bgr => imaging::Channels::Bgr,
            wit::Color::Gray => imaging::Channels::Gray,
        },
        scale: options.scale,
        mean: options.mean,
        std: options.std,
    }
}

pub(super) fn statistics_of(channel: imaging::ChannelStatistics) -> wit::ChannelStatistics {
    let imaging::ChannelStatistics { min, max, mean } = channel;
    wit::ChannelStatistics { min, max, mean }
}

/// What decoding an image of this size is called in texts.
pub(super) fn decoding(Size { width, height }: Size) -> String {
    format!("decoding {width}x{height} pixels")
}

/// How an image of this size lies in a frame, which must have pixels.
pub(super) fn letterbox_in(size: Size, frame: Size) -> Result<imaging::Letterbox, wit::ImageError> {
    let Size { width, height } = frame;
    if width == 0 || height == 0 {
        let why = format!("letterbox of {width}x{height}: both sides must be at least 1");
        return Err(wit::ImageError::InvalidArgument(why));
    }
    Ok(size.letterboxed(frame))
}

/// The error for the guest, or an error of the host that ends the call.
pub(super) fn refused(error: ImageError) -> Result<wit::ImageError, CpuExhausted> {
    Ok(match error {
        ImageError::UnknownFormat => wit::ImageError::UnknownFormat,
        ImageError::Malformed(why) => wit::ImageError::Malformed(why),
        error @ ImageError::TooLarge { .. } => wit::ImageError::TooLarge(error.to_string()),
        ImageError::InvalidArgument(why) => wit::ImageError::InvalidArgument(why),
        ImageError::Stopped(_) => return Err(CpuExhausted),
    })
}
