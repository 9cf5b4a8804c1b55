//! Borders around a picture, parts of one, and sizes that keep the ratio of its sides.

use super::{Border, Filter, ImageError, Letterboxed, Pixels, Placement, check_size};

type Size = (u32, u32);

/// The size of the same ratio whose shorter side is `shorter`. The longer side is rounded down.
pub(super) fn with_shorter_side((width, height): Size, shorter: u32) -> Size {
    let (short, long) = (width.min(height), width.max(height));
    let scaled = u64::from(shorter) * u64::from(long) / u64::from(short);
    let longer = u32::try_from(scaled).unwrap_or(u32::MAX);
    if width <= height { (shorter, longer) } else { (longer, shorter) }
}

/// The corner of the part of size `part` in the middle. A half pixel is rounded to the even number.
pub(super) fn middle(own: Size, part: Size) -> (u32, u32) {
    let start = |own: u32, part: u32| {
        let margin = own.saturating_sub(part);
        margin / 2 + (margin & margin / 2 & 1)
    };
    (start(own.0, part.0), start(own.1, part.1))
}

fn scaled((width, height): Size, scale: f64) -> Size {
    // Saturates.
    let side = |own: u32| ((f64::from(own) * scale).round() as u32).max(1);
    (side(width), side(height))
}

pub(super) fn pad(pixels: &Pixels, border: Border, fill: &[u8]) -> Result<Pixels, ImageError> {
    let channels = pixels.channels();
    if !fill.is_empty() && fill.len() != channels {
        let values = fill.len();
        return Err(ImageError::InvalidArgument(format!(
            "fill has {values} values, but the picture has {channels} channels"
        )));
    }
    let side = |before: u32, own: u32, after: u32| own.saturating_add(before).saturating_add(after);
    let width = side(border.left, pixels.width, border.right);
    let height = side(border.top, pixels.height, border.bottom);
    check_size(width, height)?;
    let fill = if fill.is_empty() { &[0; 3][..channels] } else { fill };
    let mut data = fill.repeat(width as usize * height as usize);
    let stride = width as usize * channels;
    let target = data.chunks_exact_mut(stride).skip(border.top as usize);
    let own = pixels.width as usize * channels;
    for (target, source) in target.zip(pixels.data.chunks_exact(own)) {
        target[border.left as usize * channels..][..own].copy_from_slice(source);
    }
    Ok(Pixels { width, height, color: pixels.color, data: data.into() })
}

pub(super) fn letterbox(
    pixels: &Pixels,
    (width, height): Size,
    filter: Filter,
    fill: &[u8],
) -> Result<Letterboxed, ImageError> {
    if width == 0 || height == 0 {
        let why = format!("letterbox of {width}x{height}: both sides must be at least 1");
        return Err(ImageError::InvalidArgument(why));
    }
    let ratio = |frame: u32, own: u32| f64::from(frame) / f64::from(own);
    let scale = ratio(width, pixels.width).min(ratio(height, pixels.height));
    let inner = scaled((pixels.width, pixels.height), scale);
    let inner = (inner.0.min(width), inner.1.min(height));
    let (free_x, free_y) = (width - inner.0, height - inner.1);
    let (left, top) = (free_x / 2, free_y / 2);
    let border = Border { left, top, right: free_x - left, bottom: free_y - top };
    let framed = pixels.resize(inner.0, inner.1, filter)?.pad(border, fill)?;
    let placement = Placement {
        scale_x: inner.0 as f32 / pixels.width as f32,
        scale_y: inner.1 as f32 / pixels.height as f32,
        left,
        top,
        width: pixels.width,
        height: pixels.height,
    };
    Ok(Letterboxed { pixels: framed, placement })
}

pub(super) fn crop(
    pixels: &Pixels,
    (x, y): (u32, u32),
    (width, height): Size,
) -> Result<Pixels, ImageError> {
    let fits = |start: u32, length: u32, side: u32| {
        length > 0 && start.checked_add(length).is_some_and(|end| end <= side)
    };
    let (own_width, own_height) = (pixels.width, pixels.height);
    if !fits(x, width, own_width) || !fits(y, height, own_height) {
        return Err(ImageError::InvalidArgument(format!(
            "crop of {width}x{height} at ({x}, {y}) is not within {own_width}x{own_height}"
        )));
    }
    let channels = pixels.channels();
    let rows = pixels.data.chunks_exact(own_width as usize * channels).skip(y as usize);
    let part = |row: &'_ [u8]| row[x as usize * channels..][..width as usize * channels].to_vec();
    let data = rows.take(height as usize).flat_map(part).collect();
    Ok(Pixels { width, height, color: pixels.color, data })
}
