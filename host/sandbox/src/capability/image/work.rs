//! How native work on images is done: its memory is counted and its time is estimated before it
//! begins.

use std::time::Duration;

use bytes::Bytes;
use gristmill_core::BufferPool;
use gristmill_imaging::{
    self as imaging, Cost, Encoded, ImageError, Limits, Pixels, Size, Stopped,
};
use wasmtime::component::Resource;

use super::bindings::wit;
use super::terms::{NOTHING, PADDING, RESIZING, decoding, filter_of, refused};
use crate::call::CallState;
use crate::error::HELD_KEY;

/// The longest work that is done on a serving thread.
const INLINE_CPU_MAX: Duration = Duration::from_millis(2);

/// How far the estimated time may exceed the rest of the budget, because estimates are rather too
/// high.
const OVERRUN_MAX: Duration = Duration::from_millis(50);

/// How a file is decoded, besides the guest's options.
#[derive(Clone, Copy, Default)]
pub(super) struct How {
    pub(super) lenient: bool,
    /// As contracts before 0.3 say it.
    pub(super) before_0_3: bool,
}

impl<S: Send> CallState<S> {
    /// Do `work`, whose estimated cost is `cost`, and put its result into the call's table. The
    /// text of a refusal begins with `what`.
    pub(super) async fn native<T: AsRef<[u8]> + Send + 'static>(
        &mut self,
        what: &str,
        cost: Result<Cost, ImageError>,
        work: impl FnOnce(imaging::Workspace<'_>) -> Result<T, ImageError>,
    ) -> wasmtime::Result<Result<Resource<T>, wit::ImageError>> {
        match self.make(what, cost, work).await? {
            Ok(made) => Ok(Ok(self.table.push(made)?)),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Do `work`, whose estimated cost is `cost`. The memory of its result, a buffer of the pool,
    /// stays counted.
    pub(super) async fn make<T: AsRef<[u8]>>(
        &mut self,
        what: &str,
        cost: Result<Cost, ImageError>,
        work: impl FnOnce(imaging::Workspace<'_>) -> Result<T, ImageError>,
    ) -> wasmtime::Result<Result<T, wit::ImageError>> {
        let kept = |made: &T| BufferPool::bytes_taken(made.as_ref().len());
        self.make_counted(what, cost, kept, work).await
    }

    /// Do `work`, whose estimated cost is `cost`. The bytes of its result, of which `kept` says
    /// how many there are, stay counted.
    pub(super) async fn make_counted<T>(
        &mut self,
        what: &str,
        cost: Result<Cost, ImageError>,
        kept: fn(&T) -> usize,
        work: impl FnOnce(imaging::Workspace<'_>) -> Result<T, ImageError>,
    ) -> wasmtime::Result<Result<T, wit::ImageError>> {
        self.meter.take_turns().await?;
        let cost = match cost {
            Ok(cost) => cost,
            Err(error) => return Ok(Err(refused(error)?)),
        };
        if let Some(why) = self.refuses(cost) {
            return Ok(Err(wit::ImageError::TooLarge(format!("{what} may take {why}"))));
        }
        if cost.cpu > INLINE_CPU_MAX {
            self.meter.off_serving_threads().await;
        }
        self.hold(cost.bytes)?;
        let (meter, pool) = (self.meter.clone(), self.pool.clone());
        let made = work(imaging::Workspace { pool: &pool, check: &|| meter.check() });
        let kept = made.as_ref().map_or(0, kept);
        self.give_back(cost.bytes.saturating_sub(kept));
        match made {
            Ok(made) => Ok(Ok(made)),
            Err(error) => Ok(Err(refused(error)?)),
        }
    }

    /// The reason for which work of this cost is refused, if it is. Some decoders cannot be
    /// stopped, so work does not begin if it would take longer than the rest of the call's budget.
    pub(super) fn refuses(&self, cost: Cost) -> Option<String> {
        let (limit, left) = (self.limits.host_memory_bytes, self.meter.left());
        if cost.bytes > limit {
            let bytes = cost.bytes;
            return Some(format!(
                "{bytes} bytes of memory; the limit is {limit} (the server's {HELD_KEY})"
            ));
        }
        (cost.cpu > left + OVERRUN_MAX).then(|| {
            let (cpu, left) = (cost.cpu.as_millis(), left.as_millis());
            let limit = self.meter.limit().as_millis();
            format!(
                "{cpu} ms of CPU time; the call has {left} ms left of {limit} (limits.cpu_ms of \
                 the pipeline)"
            )
        })
    }

    /// [`data`](wit::HostPixels::data), as [`lend`](Self::lend) does it.
    pub(in crate::capability) async fn lend_pixels(
        &mut self,
        pixels: Resource<Pixels>,
    ) -> wasmtime::Result<Bytes> {
        let bytes = Bytes::from_owner(self.pixels(&pixels)?);
        self.lend(bytes).await
    }

    pub(super) fn pixels(&self, pixels: &Resource<Pixels>) -> wasmtime::Result<Pixels> {
        Ok(self.table.get(pixels)?.clone())
    }

    pub(super) fn image_limits(&self) -> Limits {
        Limits::of_pixels(self.limits.pixels)
    }

    pub(super) async fn resized(
        &mut self,
        pixels: &Pixels,
        target: Size,
        filter: wit::Filter,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        let (filter, limits) = (filter_of(filter), self.image_limits());
        let cost = pixels.resize_cost(target, filter, limits);
        self.native(RESIZING, cost, |work| pixels.resize(work, target, filter, limits)).await
    }

    pub(super) async fn resized_shorter(
        &mut self,
        pixels: Resource<Pixels>,
        size: u32,
        filter: wit::Filter,
        rounding: impl FnOnce(Size, u32) -> Size,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        let pixels = self.pixels(&pixels)?;
        let target = match size {
            0 => NOTHING,
            _ => rounding(pixels.size(), size),
        };
        self.resized(&pixels, target, filter).await
    }

    /// `resize-shorter` of contract 0.2.
    pub(in crate::capability) async fn resize_shorter_rounded(
        &mut self,
        pixels: Resource<Pixels>,
        size: u32,
        filter: wit::Filter,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        self.resized_shorter(pixels, size, filter, Size::with_shorter_side_rounded).await
    }

    /// `decode` of contracts before 0.3.
    pub(in crate::capability) async fn decode_before_0_3(
        &mut self,
        data: Resource<Bytes>,
        options: wit::DecodeOptions,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        self.decoded(data, options, How { lenient: false, before_0_3: true }).await
    }

    /// `decode-leniently` of contracts before 0.3.
    pub(in crate::capability) async fn decode_leniently_before_0_3(
        &mut self,
        data: Resource<Bytes>,
        options: wit::DecodeOptions,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        self.decoded(data, options, How { lenient: true, before_0_3: true }).await
    }

    pub(super) async fn decoded(
        &mut self,
        data: Resource<Bytes>,
        options: wit::DecodeOptions,
        how: How,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        let data = self.table.get(&data)?.clone();
        match self.header(&data, options, how).await? {
            Ok(image) => {
                let what = decoding(image.size());
                self.native(&what, Ok(image.cost()), |work| image.decode(work)).await
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// The header of an image that is to be decoded.
    pub(super) async fn header<'a>(
        &mut self,
        data: &'a Bytes,
        options: wit::DecodeOptions,
        How { lenient, before_0_3 }: How,
    ) -> wasmtime::Result<Result<Encoded<'a>, wit::ImageError>> {
        self.meter.raise_limit(self.limits.cpu_decoding);
        self.meter.take_turns().await?;
        let options = imaging::DecodeOptions {
            gray: options.color == wit::Color::Gray,
            upright: options.upright,
            before_0_3,
            lenient,
            limits: self.image_limits(),
        };
        // A serving thread reads only the beginning of a header.
        let image = match Encoded::read(data, options, &|| Err(Stopped)) {
            Err(ImageError::Stopped(_)) => {
                self.meter.off_serving_threads().await;
                let meter = self.meter.clone();
                Encoded::read(data, options, &|| meter.check())
            }
            image => image,
        };
        match image {
            Ok(image) => Ok(Ok(image)),
            Err(error) => Ok(Err(refused(error)?)),
        }
    }

    /// `resized` with this border, as a letterbox of an image of size `original`.
    pub(super) async fn framed(
        &mut self,
        resized: &Pixels,
        original: Size,
        border: imaging::Border,
        fill: &[u8],
    ) -> wasmtime::Result<Result<wit::Letterboxed, wit::ImageError>> {
        let limits = self.image_limits();
        let cost = resized.pad_cost(border, fill, limits);
        let pad = |work: imaging::Workspace<'_>| resized.pad(work, border, fill, limits);
        let pixels = match self.native(PADDING, cost, pad).await? {
            Ok(pixels) => pixels,
            Err(error) => return Ok(Err(error)),
        };
        let placement = wit::Placement {
            scale_x: resized.width() as f32 / original.width as f32,
            scale_y: resized.height() as f32 / original.height as f32,
            left: border.left,
            top: border.top,
            width: original.width,
            height: original.height,
        };
        Ok(Ok(wit::Letterboxed { pixels, placement }))
    }
}
