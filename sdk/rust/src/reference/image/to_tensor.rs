//! From pixels to a tensor of one row.

use super::{Color, Dtype, ImageError, Layout, Pixels, Tensor, TensorOptions, luma};

/// `value * factor + offset`
#[derive(Clone, Copy, PartialEq)]
struct Map {
    factor: f32,
    offset: f32,
}

pub(super) fn to_tensor(pixels: &Pixels, options: &TensorOptions) -> Result<Tensor, ImageError> {
    let invalid = |why: String| Err(ImageError::InvalidArgument(why));
    let gray = options.color == Color::Gray;
    if pixels.color == Color::Gray && !gray {
        return invalid("a gray picture cannot become a coloured tensor: decode it as rgb".into());
    }
    let order: &[usize] = match options.color {
        Color::Rgb => &[0, 1, 2],
        Color::Bgr => &[2, 1, 0],
        Color::Gray => &[0],
    };
    let maps = maps(options, order.len())?;
    match options.dtype {
        Dtype::Float32 => {}
        Dtype::Uint8 if maps.iter().any(|map| *map != Map { factor: 1.0, offset: 0.0 }) => {
            return invalid("a uint8 tensor takes scale 1 and neither mean nor std".into());
        }
        Dtype::Uint8 => {}
        other => return invalid(format!("a picture becomes Float32 or Uint8, not {other:?}")),
    }
    let is_luma = gray && pixels.color != Color::Gray;
    let source: Vec<u8> = if is_luma {
        pixels.data.as_chunks().0.iter().map(|pixel| luma(*pixel)).collect()
    } else {
        pixels.data.to_vec()
    };
    let channels = order.len();
    let (width, height) = (pixels.width as usize, pixels.height as usize);
    let (places, count) = (0..width * height, width * height);
    let at: Vec<(usize, usize)> = match options.layout {
        Layout::Nhwc => places.flat_map(|p| (0..channels).map(move |c| (p, c))).collect(),
        Layout::Nchw => (0..channels).flat_map(|c| (0..count).map(move |p| (p, c))).collect(),
    };
    let shape = match options.layout {
        Layout::Nchw => [1, channels, height, width],
        Layout::Nhwc => [1, height, width, channels],
    };
    let byte = |&(place, channel): &(usize, usize)| source[place * channels + order[channel]];
    let number = |at: &(usize, usize)| {
        let Map { factor, offset } = maps[at.1];
        f32::from(byte(at)).mul_add(factor, offset)
    };
    let made = if options.dtype == Dtype::Uint8 {
        Tensor::from_slice(&shape, &at.iter().map(byte).collect::<Vec<u8>>())
    } else {
        Tensor::from_slice(&shape, &at.iter().map(number).collect::<Vec<f32>>())
    };
    made.map_err(|error| ImageError::InvalidArgument(error.to_string()))
}

/// Factor and offset for each channel.
fn maps(options: &TensorOptions, channels: usize) -> Result<Vec<Map>, ImageError> {
    for (name, list) in [("mean", &options.mean), ("std", &options.std)] {
        if !list.is_empty() && list.len() != channels {
            let values = list.len();
            let why = format!("{name} has {values} values for {channels} channels");
            return Err(ImageError::InvalidArgument(why));
        }
    }
    if let Some(zero) = options.std.iter().find(|value| **value == 0.0 || !value.is_finite()) {
        return Err(ImageError::InvalidArgument(format!("std cannot be {zero}")));
    }
    let map = |channel: usize| {
        let mean = options.mean.get(channel).copied().unwrap_or(0.0);
        let std = options.std.get(channel).copied().unwrap_or(1.0);
        Map { factor: options.scale / std, offset: -mean / std }
    };
    Ok((0..channels).map(map).collect())
}
