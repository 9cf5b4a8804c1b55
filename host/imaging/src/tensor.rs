//! From pixels to a tensor of one row.

use gristmill_core::{BufferPool, Dtype, Tensor};

use crate::{ImageError, Pixels};

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
    Rgb,
    Bgr,
    Gray,
}

/// How pixels become numbers: `(value * scale - mean[c]) / std[c]`.
#[derive(Clone, Debug)]
pub struct TensorOptions {
    /// `Float32` or `Uint8`; the latter only with scale 1, no mean and no std.
    pub dtype: Dtype,
    pub layout: Layout,
    pub channels: Channels,
    /// Multiplies each 8-bit value first.
    pub scale: f32,
    /// One value per channel in tensor order, or empty for 0.
    pub mean: Vec<f32>,
    /// One value per channel in tensor order, or empty for 1.
    pub std: Vec<f32>,
}

impl Pixels {
    /// The picture as [1, c, h, w] or [1, h, w, c].
    pub fn to_tensor(
        &self,
        pool: &BufferPool,
        options: &TensorOptions,
    ) -> Result<Tensor, ImageError> {
        let gray = options.channels == Channels::Gray;
        if self.is_gray() && !gray {
            return Err(ImageError::InvalidArgument(
                "a gray picture cannot become a coloured tensor: decode it as rgb".into(),
            ));
        }
        let luma;
        let source = if gray && !self.is_gray() {
            luma = luma_of(self.data());
            &luma
        } else {
            self.data()
        };
        let order: &[usize] = match options.channels {
            Channels::Rgb => &[0, 1, 2],
            Channels::Bgr => &[2, 1, 0],
            Channels::Gray => &[0],
        };
        let per_channel = affine(options, order.len())?;
        let plan = Plan { source, order, layout: options.layout };
        let count = source.len();
        let data = match options.dtype {
            Dtype::Float32 => pool.fill(count * 4, |bytes| {
                let target: &mut [f32] = bytemuck::cast_slice_mut(bytes);
                plan.write(target, |value, channel| {
                    let (factor, offset) = per_channel[channel];
                    f32::from(value).mul_add(factor, offset)
                });
            }),
            Dtype::Uint8 => {
                if per_channel.iter().any(|map| *map != (1.0, 0.0)) {
                    return Err(ImageError::InvalidArgument(
                        "a uint8 tensor takes scale 1 and neither mean nor std".into(),
                    ));
                }
                pool.fill(count, |target| plan.write(target, |value, _| value))
            }
            other => {
                return Err(ImageError::InvalidArgument(format!(
                    "a picture becomes FP32 or UINT8, not {other}"
                )));
            }
        };
        let (height, width) = (self.height() as usize, self.width() as usize);
        let shape = match options.layout {
            Layout::Nchw => [1, order.len(), height, width],
            Layout::Nhwc => [1, height, width, order.len()],
        };
        Tensor::new(options.dtype, shape.as_slice().into(), data)
            .map_err(|error| ImageError::InvalidArgument(error.to_string()))
    }
}

/// Factor and offset for each channel, so that a value costs one fused multiply-add.
fn affine(options: &TensorOptions, channels: usize) -> Result<Vec<(f32, f32)>, ImageError> {
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
        (options.scale / std, -mean / std)
    };
    Ok((0..channels).map(map).collect())
}

/// ITU-R BT.601 luma, rounded.
fn luma_of(rgb: &[u8]) -> Vec<u8> {
    let luma = |rgb: &[u8]| {
        let weigh = |value: u8, weight: u32| u32::from(value) * weight;
        ((weigh(rgb[0], 299) + weigh(rgb[1], 587) + weigh(rgb[2], 114) + 500) / 1000) as u8
    };
    rgb.chunks_exact(3).map(luma).collect()
}

struct Plan<'a> {
    source: &'a [u8],
    /// For each channel of the tensor, the picture's channel.
    order: &'a [usize],
    layout: Layout,
}

impl Plan<'_> {
    fn write<T>(&self, target: &mut [T], map: impl Fn(u8, usize) -> T) {
        let channels = self.order.len();
        match self.layout {
            Layout::Nchw => {
                let planes = target.chunks_exact_mut(self.source.len() / channels);
                for ((channel, from), plane) in self.order.iter().enumerate().zip(planes) {
                    for (value, pixel) in plane.iter_mut().zip(self.source.chunks_exact(channels)) {
                        *value = map(pixel[*from], channel);
                    }
                }
            }
            Layout::Nhwc => {
                let pixels = target.chunks_exact_mut(channels);
                for (values, pixel) in pixels.zip(self.source.chunks_exact(channels)) {
                    for ((channel, from), value) in self.order.iter().enumerate().zip(values) {
                        *value = map(pixel[*from], channel);
                    }
                }
            }
        }
    }
}
