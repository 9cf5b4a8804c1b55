//! The contract's terms and those of `gristmill_imaging`.

use gristmill_imaging::{self as imaging, ImageError};

use super::bindings::wit;
use crate::capability::tensors::dtype_of;
use crate::meter::CpuExhausted;

pub(super) fn filter_of(filter: wit::Filter) -> imaging::Filter {
    match filter {
        wit::Filter::Nearest => imaging::Filter::Nearest,
        wit::Filter::Bilinear => imaging::Filter::Bilinear,
        wit::Filter::Bicubic => imaging::Filter::Bicubic,
        wit::Filter::Lanczos3 => imaging::Filter::Lanczos3,
    }
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
