//! From pixels to a tensor of one row.

use std::array::from_fn;

use bytemuck::Pod;
use gristmill_core::{BufferMut, BufferPool, Dtype, Tensor};

use crate::error::ImageError;
use crate::pixels::Pixels;
use crate::work::{Cost, Workspace};

/// Order of a tensor's dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// rows, channels, height, width
    Nchw,
    /// rows, height, width, channels
    Nhwc,
}

/// A tensor's channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// Three: red, green, blue.
    Rgb,
    /// Three: blue, green, red.
    Bgr,
    /// One: ITU-R BT.601 luma.
    Gray,
}

/// How pixels become numbers: `(value * scale - mean[c]) / std[c]`.
#[derive(Clone, Debug)]
pub struct TensorOptions {
    /// `Float32` or `Uint8`. `Uint8` needs scale 1, no mean and no std.
    pub dtype: Dtype,
    /// Order of the dimensions.
    pub layout: Layout,
    /// Channels and their order.
    pub channels: Channels,
    /// Multiplies each 8-bit value first.
    pub scale: f32,
    /// One value per channel in tensor order, or empty for 0.
    pub mean: Vec<f32>,
    /// One value per channel in tensor order, or empty for 1.
    pub std: Vec<f32>,
}

/// The values that are written between two checks, about.
const PART_VALUES: usize = 256 << 10;

/// Nanoseconds to write 64 values, and to weigh 64 pixels into luma.
const VALUE_NS_PER_64: u64 = 100;
const LUMA_NS_PER_64: u64 = 100;

/// How an image becomes a tensor.
struct Plan {
    order: &'static [usize],
    /// Factor and offset of each channel.
    maps: Vec<Map>,
    layout: Layout,
    dtype: Dtype,
    /// Whether the image's colours become luma first.
    luma: bool,
}

/// `value * factor + offset`
#[derive(Clone, Copy, PartialEq)]
struct Map {
    factor: f32,
    offset: f32,
}

impl Pixels {
    fn tensor_plan(&self, options: &TensorOptions) -> Result<Plan, ImageError> {
        let invalid = |why: String| Err(ImageError::InvalidArgument(why));
        let gray = options.channels == Channels::Gray;
        if self.is_gray() && !gray {
            return invalid(
                "a gray picture cannot become a coloured tensor: decode it as rgb".into(),
            );
        }
        let order: &[usize] = match options.channels {
            Channels::Rgb => &[0, 1, 2],
            Channels::Bgr => &[2, 1, 0],
            Channels::Gray => &[0],
        };
        let maps = maps(options, order.len())?;
        match options.dtype {
            Dtype::Float32 => {}
            Dtype::Uint8 if maps.iter().any(|map| *map != Map { factor: 1.0, offset: 0.0 }) => {
                return invalid("a uint8 tensor takes scale 1 and neither mean nor std".into());
            }
            Dtype::Uint8 => {}
            other => return invalid(format!("a picture becomes FP32 or UINT8, not {other}")),
        }
        let (layout, dtype, luma) = (options.layout, options.dtype, gray && !self.is_gray());
        Ok(Plan { order, maps, layout, dtype, luma })
    }

    /// The cost of [`to_tensor`](Self::to_tensor).
    ///
    /// # Errors
    /// [`ImageError::InvalidArgument`] if the options do not fit one another or the image.
    pub fn to_tensor_cost(&self, options: &TensorOptions) -> Result<Cost, ImageError> {
        let plan = self.tensor_plan(options)?;
        let pixels = self.size().pixels();
        let values = pixels * plan.order.len() as u64;
        let bytes = values as usize * plan.dtype.size_bytes().unwrap_or(1);
        let luma = if plan.luma { pixels } else { 0 };
        let time = 1_000 + values * VALUE_NS_PER_64 / 64 + luma * LUMA_NS_PER_64 / 64;
        Ok(Cost::new(BufferPool::bytes_taken(bytes) + luma as usize, time))
    }

    /// The image as [1, c, h, w] or [1, h, w, c].
    ///
    /// # Errors
    /// As for [`to_tensor_cost`](Self::to_tensor_cost), and [`ImageError::Stopped`] if the check of
    /// `work` refuses.
    pub fn to_tensor(
        &self,
        work: Workspace<'_>,
        options: &TensorOptions,
    ) -> Result<Tensor, ImageError> {
        let plan = self.tensor_plan(options)?;
        let luma;
        let source = if plan.luma {
            luma = luma_of(self.data(), work)?;
            &luma
        } else {
            self.data()
        };
        let mut target = work.pool.begin(source.len() * plan.dtype.size_bytes().unwrap_or(1));
        if plan.dtype == Dtype::Float32 {
            let table = |map: &Map| -> Table<f32> {
                from_fn(|value| (value as f32).mul_add(map.factor, map.offset))
            };
            plan.write(source, &mut target, work, table)?;
        } else {
            plan.write(source, &mut target, work, |_| from_fn(|value| value as u8))?;
        }
        let (height, width) = (self.height() as usize, self.width() as usize);
        let shape = match options.layout {
            Layout::Nchw => [1, plan.order.len(), height, width],
            Layout::Nhwc => [1, height, width, plan.order.len()],
        };
        Tensor::new(options.dtype, shape.as_slice().into(), target.freeze())
            .map_err(|error| ImageError::InvalidArgument(error.to_string()))
    }
}

/// Factor and offset for each channel.
fn maps(options: &TensorOptions, channels: usize) -> Result<Vec<Map>, ImageError> {
    for (name, list) in [("mean", &options.mean), ("std", &options.std)] {
        if !list.is_empty() && list.len() != channels {
            return Err(ImageError::InvalidArgument(format!(
                "{name} has {} values for {channels} channels",
                list.len()
            )));
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

/// The ITU-R BT.601 luma of a pixel, rounded.
pub(crate) fn luma(rgb: [u8; 3]) -> u8 {
    let [red, green, blue] = rgb.map(u32::from);
    ((red * 299 + green * 587 + blue * 114 + 500) / 1000) as u8
}

fn luma_of(rgb: &[u8], work: Workspace<'_>) -> Result<Vec<u8>, ImageError> {
    let mut made = Vec::with_capacity(rgb.len() / 3);
    for part in rgb.chunks(3 * PART_VALUES) {
        (work.check)()?;
        made.extend(part.as_chunks().0.iter().map(|pixel| luma(*pixel)));
    }
    Ok(made)
}

/// The result for each value of a channel.
type Table<T> = [T; 256];

/// Write one channel of the pixels. Its number is known to the compiler, because this runs for each
/// value of an image.
fn plane<const CHANNEL: usize, T: Pod>(
    pixels: &[[u8; 3]],
    table: &Table<T>,
    target: &mut BufferMut,
) {
    target.extend(pixels.iter().map(|pixel| table[usize::from(pixel[CHANNEL])]));
}

impl Plan {
    fn write<T: Pod>(
        &self,
        source: &[u8],
        target: &mut BufferMut,
        work: Workspace<'_>,
        table: impl Fn(&Map) -> Table<T>,
    ) -> Result<(), ImageError> {
        let of = |table: &Table<T>, value: u8| table[usize::from(value)];
        let tables: Vec<_> = self.maps.iter().map(table).collect();
        if let ([first, second, third], [a, b, c]) = (self.order, &tables[..]) {
            let pixels = source.as_chunks::<3>().0.chunks(PART_VALUES);
            if self.layout == Layout::Nhwc {
                for part in pixels {
                    (work.check)()?;
                    target.extend(part.iter().map(|pixel| {
                        [of(a, pixel[*first]), of(b, pixel[*second]), of(c, pixel[*third])]
                    }));
                }
                return Ok(());
            }
            for (from, only) in [(*first, a), (*second, b), (*third, c)] {
                for part in pixels.clone() {
                    (work.check)()?;
                    match from {
                        0 => plane::<0, T>(part, only, target),
                        1 => plane::<1, T>(part, only, target),
                        _ => plane::<2, T>(part, only, target),
                    }
                }
            }
        } else if let [only] = &tables[..] {
            for part in source.chunks(PART_VALUES) {
                (work.check)()?;
                target.extend(part.iter().map(|value| of(only, *value)));
            }
        }
        Ok(())
    }
}
