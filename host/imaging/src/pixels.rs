//! A decoded picture, and what can be done to it as a picture.

use std::sync::Arc;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use gristmill_core::{Buffer, BufferPool};

use crate::{ImageError, check_size};

/// How resizing weighs source pixels. All but `Nearest` are antialiased when shrinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    Nearest,
    Bilinear,
    Bicubic,
    Lanczos3,
}

/// A picture of 8 bits a channel, row-major, channels interleaved. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pixels {
    width: u32,
    height: u32,
    gray: bool,
    data: Arc<Buffer>,
}

impl Pixels {
    /// A picture of `data`, which must be width * height * channels long.
    pub(crate) fn new(
        width: u32,
        height: u32,
        gray: bool,
        data: Arc<Buffer>,
    ) -> Result<Self, ImageError> {
        let pixels = Self { width, height, gray, data };
        if width == 0 || height == 0 || pixels.data().len() != pixels.len_bytes() {
            return Err(ImageError::Malformed(format!(
                "{width}x{height} picture of {} bytes",
                pixels.data().len()
            )));
        }
        Ok(pixels)
    }

    pub fn width(&self) -> u32 {
        self.width
    }

    pub fn height(&self) -> u32 {
        self.height
    }

    pub fn is_gray(&self) -> bool {
        self.gray
    }

    pub fn data(&self) -> &[u8] {
        self.data.as_bytes()
    }

    pub(crate) fn channels(&self) -> usize {
        if self.gray { 1 } else { 3 }
    }

    fn len_bytes(&self) -> usize {
        self.width as usize * self.height as usize * self.channels()
    }

    /// The picture at another size, its aspect not kept.
    pub fn resize(
        &self,
        pool: &BufferPool,
        (width, height): (u32, u32),
        filter: Filter,
        pixels_max: u64,
    ) -> Result<Self, ImageError> {
        if width == 0 || height == 0 {
            return Err(ImageError::InvalidArgument(format!("cannot resize to {width}x{height}")));
        }
        check_size(width.into(), height.into(), pixels_max)?;
        if (width, height) == (self.width, self.height) {
            return Ok(self.clone());
        }
        let algorithm = match filter {
            Filter::Nearest => ResizeAlg::Nearest,
            Filter::Bilinear => ResizeAlg::Convolution(FilterType::Bilinear),
            Filter::Bicubic => ResizeAlg::Convolution(FilterType::CatmullRom),
            Filter::Lanczos3 => ResizeAlg::Convolution(FilterType::Lanczos3),
        };
        let kind = if self.gray { PixelType::U8 } else { PixelType::U8x3 };
        let failed = |error: &dyn std::fmt::Display| ImageError::InvalidArgument(error.to_string());
        let source = ImageRef::new(self.width, self.height, self.data(), kind)
            .map_err(|error| failed(&error))?;
        let len = width as usize * height as usize * self.channels();
        let data = pool.try_fill(len, |target| {
            let mut target = Image::from_slice_u8(width, height, target, kind)
                .map_err(|error| failed(&error))?;
            let options = ResizeOptions::new().resize_alg(algorithm).use_alpha(false);
            Resizer::new().resize(&source, &mut target, &options).map_err(|error| failed(&error))
        })?;
        Self::new(width, height, self.gray, data)
    }

    /// The rectangle of `width` x `height` whose upper left corner is (`x`, `y`).
    pub fn crop(
        &self,
        pool: &BufferPool,
        (x, y): (u32, u32),
        (width, height): (u32, u32),
    ) -> Result<Self, ImageError> {
        let fits = |start: u32, len: u32, size: u32| {
            len > 0 && start.checked_add(len).is_some_and(|end| end <= size)
        };
        if !fits(x, width, self.width) || !fits(y, height, self.height) {
            return Err(ImageError::InvalidArgument(format!(
                "crop of {width}x{height} at ({x}, {y}) is not within {}x{}",
                self.width, self.height
            )));
        }
        let channels = self.channels();
        let (stride, row) = (self.width as usize * channels, width as usize * channels);
        let rows = self.data().chunks_exact(stride).skip(y as usize);
        let data = pool.fill(row * height as usize, |target| {
            for (target, source) in target.chunks_exact_mut(row).zip(rows) {
                target.copy_from_slice(&source[x as usize * channels..][..row]);
            }
        });
        Self::new(width, height, self.gray, data)
    }
}
