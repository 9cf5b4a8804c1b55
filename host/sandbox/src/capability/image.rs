//! `image`: native work on images. Before it begins, its memory is counted and its time is
//! estimated.

mod bindings;
mod terms;
mod work;

use bytes::Bytes;
use gristmill_core::{BufferPool, Tensor};
use gristmill_imaging::{self as imaging, Pixels, Rect, Size};
use wasmtime::component::{HasSelf, Linker, Resource};

pub use self::bindings::wit;
use self::terms::{
    CROPPING, NOTHING, PADDING, RESIZING, bytes_like, decoding, encoding_of, filter_of,
    letterbox_in, options_of, rect_of, refused, shape_of, statistics_of,
};
use self::work::How;
use super::methods::{link_instead, link_methods};
use crate::call::CallState;
use crate::meter::CpuExhausted;

const INTERFACE: &str = "gristmill:plugin/image@0.3.0";

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &[INTERFACE];

pub(crate) fn link<S: Send + 'static>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    link_instead(linker, |linker| {
        let mut instance = linker.instance(INTERFACE)?;
        link_methods! { instance,
            async "[method]pixels.data" = CallState::lend_pixels, (pixels: Resource<Pixels>);
        }
        Ok(())
    })
}

impl<S: Send> wit::Host for CallState<S> {}

impl<S: Send> wit::HostPixels for CallState<S> {
    async fn from_bytes(
        &mut self,
        width: u32,
        height: u32,
        color: wit::Color,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        let (size, gray, bytes) = (Size { width, height }, color == wit::Color::Gray, data.len());
        self.before_looking_at(bytes).await?;
        if let Err(error) = self.image_limits().check(size) {
            return Ok(Err(refused(error)?));
        }
        let expected = size.pixels() * if gray { 1 } else { 3 };
        if bytes as u64 != expected || expected == 0 {
            let why =
                format!("{bytes} bytes are given, but {width}x{height} pixels need {expected}");
            return Ok(Err(wit::ImageError::InvalidArgument(why)));
        }
        self.hold(BufferPool::bytes_taken(bytes))?;
        match Pixels::new(size, gray, self.pool.copy_from(&data)) {
            Ok(pixels) => Ok(Ok(self.table.push(pixels)?)),
            Err(error) => Ok(Err(refused(error)?)),
        }
    }

    async fn decode(
        &mut self,
        data: Resource<Bytes>,
        options: wit::DecodeOptions,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        self.decoded(data, options, How::default()).await
    }

    async fn decode_leniently(
        &mut self,
        data: Resource<Bytes>,
        options: wit::DecodeOptions,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        self.decoded(data, options, How { lenient: true, ..How::default() }).await
    }

    async fn decode_resized(
        &mut self,
        data: Resource<Bytes>,
        options: wit::DecodeOptions,
        size: wit::ResizedSize,
        filter: wit::Filter,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        let data = self.table.get(&data)?.clone();
        let image = match self.header(&data, options, How::default()).await? {
            Ok(image) => image,
            Err(error) => return Ok(Err(error)),
        };
        let target = match size {
            wit::ResizedSize::Exact((width, height)) => Size { width, height },
            wit::ResizedSize::Shorter(0) => NOTHING,
            wit::ResizedSize::Shorter(size) => image.upright_size().with_shorter_side(size),
        };
        let (what, filter) = (decoding(image.size()), filter_of(filter));
        let cost = image.resized_cost(target, filter);
        self.native(&what, cost, |work| image.decode_resized(work, target, filter)).await
    }

    async fn decode_letterboxed(
        &mut self,
        data: Resource<Bytes>,
        options: wit::DecodeOptions,
        width: u32,
        height: u32,
        filter: wit::Filter,
        fill: Vec<u8>,
    ) -> wasmtime::Result<Result<wit::Letterboxed, wit::ImageError>> {
        let data = self.table.get(&data)?.clone();
        let image = match self.header(&data, options, How::default()).await? {
            Ok(image) => image,
            Err(error) => return Ok(Err(error)),
        };
        let (size, filter) = (image.upright_size(), filter_of(filter));
        let letterbox = match letterbox_in(size, Size { width, height }) {
            Ok(letterbox) => letterbox,
            Err(error) => return Ok(Err(error)),
        };
        let (what, inner) = (decoding(image.size()), letterbox.inner);
        let cost = image.resized_cost(inner, filter);
        let decode = |work: imaging::Workspace<'_>| image.decode_resized(work, inner, filter);
        match self.make(&what, cost, decode).await? {
            Ok(resized) => self.framed(&resized, size, letterbox.border, &fill).await,
            Err(error) => Ok(Err(error)),
        }
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
        self.resized(&pixels, Size { width, height }, filter).await
    }

    async fn resize_shorter(
        &mut self,
        pixels: Resource<Pixels>,
        size: u32,
        filter: wit::Filter,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        self.resized_shorter(pixels, size, filter, Size::with_shorter_side).await
    }

    async fn pad(
        &mut self,
        pixels: Resource<Pixels>,
        border: wit::Border,
        fill: Vec<u8>,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        let (pixels, limits) = (self.pixels(&pixels)?, self.image_limits());
        let wit::Border { left, top, right, bottom } = border;
        let border = imaging::Border { left, top, right, bottom };
        let cost = pixels.pad_cost(border, &fill, limits);
        self.native(PADDING, cost, |work| pixels.pad(work, border, &fill, limits)).await
    }

    async fn letterbox(
        &mut self,
        pixels: Resource<Pixels>,
        width: u32,
        height: u32,
        filter: wit::Filter,
        fill: Vec<u8>,
    ) -> wasmtime::Result<Result<wit::Letterboxed, wit::ImageError>> {
        self.meter.take_turns().await?;
        let (pixels, limits) = (self.pixels(&pixels)?, self.image_limits());
        let imaging::Letterbox { inner, border } =
            match letterbox_in(pixels.size(), Size { width, height }) {
                Ok(letterbox) => letterbox,
                Err(error) => return Ok(Err(error)),
            };
        let filter = filter_of(filter);
        let cost = pixels.resize_cost(inner, filter, limits);
        let resize = |work: imaging::Workspace<'_>| pixels.resize(work, inner, filter, limits);
        match self.make(RESIZING, cost, resize).await? {
            Ok(resized) => self.framed(&resized, pixels.size(), border, &fill).await,
            Err(error) => Ok(Err(error)),
        }
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
        let part = Rect { x, y, size: Size { width, height } };
        self.native(CROPPING, pixels.crop_cost(part), |work| pixels.crop(work, part)).await
    }

    async fn crop_many(
        &mut self,
        pixels: Resource<Pixels>,
        boxes: Vec<wit::CropBox>,
        size: Option<(u32, u32)>,
        filter: wit::Filter,
    ) -> wasmtime::Result<Result<Vec<Resource<Pixels>>, wit::ImageError>> {
        let (pixels, limits) = (self.pixels(&pixels)?, self.image_limits());
        self.before_looking_at(size_of_val(&boxes[..])).await?;
        let parts: Vec<_> = boxes.into_iter().map(rect_of).collect();
        let size = size.map(|(width, height)| Size { width, height });
        let crops = imaging::Crops { parts: &parts, size, filter: filter_of(filter) };
        let cost = pixels.crop_many_cost(crops, limits);
        let kept: fn(&Vec<Pixels>) -> usize =
            |made| made.iter().map(|pixels| BufferPool::bytes_taken(pixels.data().len())).sum();
        let crop = |work: imaging::Workspace<'_>| pixels.crop_many(work, crops, limits);
        match self.make_counted(CROPPING, cost, kept, crop).await? {
            Ok(made) => {
                let made = made.into_iter().map(|pixels| self.table.push(pixels));
                Ok(Ok(made.collect::<Result<Vec<_>, _>>()?))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    async fn draw(
        &mut self,
        pixels: Resource<Pixels>,
        shapes: Vec<wit::Shape>,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        let pixels = self.pixels(&pixels)?;
        self.before_looking_at(bytes_like(&shapes)).await?;
        let shapes: Vec<_> = shapes.into_iter().map(shape_of).collect();
        let cost = pixels.draw_cost(&shapes);
        self.native("drawing", cost, |work| pixels.draw(work, &shapes)).await
    }

    async fn encode(
        &mut self,
        pixels: Resource<Pixels>,
        format: wit::Encoding,
    ) -> wasmtime::Result<Result<Resource<Bytes>, wit::ImageError>> {
        let (pixels, format) = (self.pixels(&pixels)?, encoding_of(format));
        let cost = pixels.encode_cost(format);
        let encode = |work: imaging::Workspace<'_>| pixels.encode(work, format);
        match self.make_counted("encoding", cost, Vec::capacity, encode).await? {
            Ok(file) => Ok(Ok(self.table.push(Bytes::from(file))?)),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn center_crop(
        &mut self,
        pixels: Resource<Pixels>,
        width: u32,
        height: u32,
    ) -> wasmtime::Result<Result<Resource<Pixels>, wit::ImageError>> {
        let pixels = self.pixels(&pixels)?;
        let part = pixels.size().middle(Size { width, height });
        self.native(CROPPING, pixels.crop_cost(part), |work| pixels.crop(work, part)).await
    }

    async fn to_tensor(
        &mut self,
        pixels: Resource<Pixels>,
        options: wit::TensorOptions,
    ) -> wasmtime::Result<Result<Resource<Tensor>, wit::ImageError>> {
        let pixels = self.pixels(&pixels)?;
        let options = options_of(options);
        let cost = pixels.to_tensor_cost(&options);
        self.native("making a tensor", cost, |work| pixels.to_tensor(work, &options)).await
    }

    async fn statistics(
        &mut self,
        pixels: Resource<Pixels>,
    ) -> wasmtime::Result<Vec<wit::ChannelStatistics>> {
        let pixels = self.pixels(&pixels)?;
        self.before_looking_at(pixels.data().len()).await?;
        let channels = pixels.statistics(&|| self.meter.check()).map_err(|_| CpuExhausted)?;
        Ok(channels.into_iter().map(statistics_of).collect())
    }

    async fn data(&mut self, pixels: Resource<Pixels>) -> wasmtime::Result<Vec<u8>> {
        Ok(self.lend_pixels(pixels).await?.to_vec())
    }

    fn drop(&mut self, pixels: Resource<Pixels>) -> wasmtime::Result<()> {
        self.table.delete(pixels)?;
        Ok(())
    }
}
