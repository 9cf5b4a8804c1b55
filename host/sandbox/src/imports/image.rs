//! `image`: native work on pictures, its time charged to the plugin's CPU budget.

use std::time::Instant;

use bytes::Bytes;
use gristmill_core::{BufferPool, Tensor};
use gristmill_imaging::{self as imaging, ImageError, Pixels, Work};
use wasmtime::component::Resource;

use super::tensors::from_wit;
use crate::bindings::image::{self as wit, Host, HostPixels};
use crate::call::{CallState, CpuExhausted, Limited};

/// Pictures of more bytes than this are worked on off the request threads, which they would hold up
/// for milliseconds.
const INLINE_BYTES_MAX: usize = 1 << 20;

/// The compressed size from which decoding may take that long.
const INLINE_FILE_BYTES_MAX: usize = 256 << 10;

impl Host for CallState {}

impl CallState {
    /// Run `work`, inline where it is `short`, and charge the time it took.
    async fn native<T: Send + 'static>(
        &mut self,
        short: bool,
        work: impl FnOnce(&BufferPool) -> T + Send + 'static,
    ) -> wasmtime::Result<T> {
        let pool = self.pool.clone();
        let timed = move || {
            let started = Instant::now();
            (work(&pool), started.elapsed())
        };
        let (result, took) =
            if short { timed() } else { tokio::task::spawn_blocking(timed).await? };
        self.charge(took);
        if self.cpu_exhausted() {
            return Err(CpuExhausted.into());
        }
        Ok(result)
    }

    /// Keep a picture that an operation made, or pass on why it made none.
    fn keep(
        &mut self,
        result: Result<Pixels, ImageError>,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        match result {
            Ok(pixels) => {
                self.hold(pixels.data().len())?;
                Ok(Ok(self.table.push(pixels)?))
            }
            Err(error) => Ok(Err(to_wit(error))),
        }
    }

    fn pixels(&self, pixels: &Resource<Pixels>) -> wasmtime::Result<Pixels> {
        Ok(self.table.get(pixels)?.clone())
    }
}

impl HostPixels for CallState {
    async fn decode(
        &mut self,
        data: Resource<Bytes>,
        options: wit::DecodeOptions,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        let data = self.table.get(&data)?.clone();
        let options = imaging::DecodeOptions {
            gray: options.color == wit::Color::Gray,
            upright: options.upright,
            lenient: false,
            limits: imaging::Limits::of_pixels(self.limits.pixels),
        };
        let short = data.len() <= INLINE_FILE_BYTES_MAX;
        let decoded = self
            .native(short, move |pool| imaging::decode(Work::unstopped(pool), &data, options))
            .await?;
        self.keep(decoded)
    }

    fn width(&mut self, pixels: Resource<Pixels>) -> wasmtime::Result<u32> {
        Ok(self.table.get(&pixels)?.width())
    }

    fn height(&mut self, pixels: Resource<Pixels>) -> wasmtime::Result<u32> {
        Ok(self.table.get(&pixels)?.height())
    }

    fn color(&mut self, pixels: Resource<Pixels>) -> wasmtime::Result<wit::Color> {
        let gray = self.table.get(&pixels)?.is_gray();
        Ok(if gray { wit::Color::Gray } else { wit::Color::Rgb })
    }

    async fn resize(
        &mut self,
        pixels: Resource<Pixels>,
        width: u32,
        height: u32,
        filter: wit::Filter,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        let pixels = self.pixels(&pixels)?;
        let filter = match filter {
            wit::Filter::Nearest => imaging::Filter::Nearest,
            wit::Filter::Bilinear => imaging::Filter::Bilinear,
            wit::Filter::Bicubic => imaging::Filter::Bicubic,
            wit::Filter::Lanczos3 => imaging::Filter::Lanczos3,
        };
        let limits = imaging::Limits::of_pixels(self.limits.pixels);
        let target = (width as usize).saturating_mul(height as usize);
        let short = pixels.data().len().max(target) <= INLINE_BYTES_MAX;
        let size = imaging::Size { width, height };
        let work =
            move |pool: &BufferPool| pixels.resize(Work::unstopped(pool), size, filter, limits);
        let resized = self.native(short, work).await?;
        self.keep(resized)
    }

    async fn crop(
        &mut self,
        pixels: Resource<Pixels>,
        x: u32,
        y: u32,
        width: u32,
        height: u32,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        let pixels = self.pixels(&pixels)?;
        let short = pixels.data().len() <= INLINE_BYTES_MAX;
        let part = imaging::Rect { x, y, size: imaging::Size { width, height } };
        let work = move |pool: &BufferPool| pixels.crop(Work::unstopped(pool), part);
        let cropped = self.native(short, work).await?;
        self.keep(cropped)
    }

    async fn to_tensor(
        &mut self,
        pixels: Resource<Pixels>,
        options: wit::TensorOptions,
    ) -> wasmtime::Result<Result<Resource<Tensor>, wit::ImageError>> {
        let pixels = self.pixels(&pixels)?;
        let options = imaging::TensorOptions {
            dtype: from_wit(options.dtype),
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
        };
        let bytes = pixels.data().len().saturating_mul(4);
        let limit = self.limits.tensor_bytes;
        if bytes > limit {
            return Err(Limited(format!("{limit} bytes for one tensor")).into());
        }
        self.hold(bytes)?;
        let short = pixels.data().len() <= INLINE_BYTES_MAX;
        let work = move |pool: &BufferPool| pixels.to_tensor(Work::unstopped(pool), &options);
        match self.native(short, work).await? {
            Ok(tensor) => Ok(Ok(self.table.push(tensor)?)),
            Err(error) => Ok(Err(to_wit(error))),
        }
    }

    fn data(&mut self, pixels: Resource<Pixels>) -> wasmtime::Result<Vec<u8>> {
        Ok(self.table.get(&pixels)?.data().to_vec())
    }

    fn drop(&mut self, pixels: Resource<Pixels>) -> wasmtime::Result<()> {
        self.table.delete(pixels)?;
        Ok(())
    }
}

fn to_wit(error: ImageError) -> wit::ImageError {
    match error {
        ImageError::UnknownFormat => wit::ImageError::UnknownFormat,
        ImageError::Malformed(why) => wit::ImageError::Malformed(why),
        error @ ImageError::TooLarge { .. } => wit::ImageError::TooLarge(error.to_string()),
        ImageError::InvalidArgument(why) => wit::ImageError::InvalidArgument(why),
        // Nothing stops it yet.
        error @ ImageError::Stopped(_) => wit::ImageError::Malformed(error.to_string()),
    }
}
