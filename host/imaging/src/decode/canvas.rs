//! The image into which decoders write their rows: as colours or luma, and without transparency.

use std::ops::Range;

use gristmill_core::BufferMut;

use super::options::DecodeOptions;
use crate::error::ImageError;
use crate::pixels::Pixels;
use crate::tensor::luma;
use crate::work::{Size, Workspace};

/// The format of a decoder's pixels.
#[derive(Clone, Copy, Debug)]
pub(super) enum Format {
    Gray,
    GrayAlpha,
    Rgb,
    Rgba,
}

impl Format {
    /// Bytes of a pixel.
    pub(super) fn channels(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::GrayAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba => 4,
        }
    }
}

/// The pixels of a row that are written: every `step`th from `x` on.
#[derive(Clone, Copy)]
pub(super) struct RowPixels {
    pub(super) y: usize,
    pub(super) x: usize,
    pub(super) step: usize,
}

impl RowPixels {
    /// All of a row.
    pub(super) fn row(y: usize) -> Self {
        Self { y, x: 0, step: 1 }
    }
}

/// An image that is being decoded. Pixels that are not written are black.
pub(super) struct Canvas {
    pub(super) size: Size,
    pub(super) gray: bool,
    pub(super) data: BufferMut,
    before_0_3: bool,
}

impl Canvas {
    pub(super) fn new(work: Workspace<'_>, size: Size, options: DecodeOptions) -> Self {
        let len = size.pixels() as usize * options.channels();
        let DecodeOptions { gray, before_0_3, .. } = options;
        Self { size, gray, data: work.pool.zeroed(len), before_0_3 }
    }

    /// Write pixels of a row, up to its end.
    pub(super) fn write(&mut self, target: RowPixels, format: Format, row: &[u8]) {
        let before_0_3 = self.before_0_3;
        let shown = |[value, alpha]: [u8; 2]| match before_0_3 {
            true => ((u16::from(value) * u16::from(alpha) + 127) / 255) as u8,
            false => value,
        };
        match format {
            // Gray pixels are luma already.
            Format::Gray if self.gray => self.store(target, row.as_chunks::<1>().0.iter().copied()),
            Format::Gray => self.store(target, row.iter().map(|value| [*value; 3])),
            Format::GrayAlpha => {
                let pixels = row.as_chunks::<2>().0.iter();
                self.put(target, pixels.map(|pixel| [shown(*pixel); 3]));
            }
            Format::Rgb => self.put(target, row.as_chunks::<3>().0.iter().copied()),
            Format::Rgba => {
                let pixels = row.as_chunks::<4>().0.iter();
                self.put(
                    target,
                    pixels.map(|[red, green, blue, alpha]| {
                        [*red, *green, *blue].map(|value| shown([value, *alpha]))
                    }),
                );
            }
        }
    }

    /// Write colours to pixels of a row, up to its end.
    pub(super) fn put(&mut self, target: RowPixels, pixels: impl Iterator<Item = [u8; 3]>) {
        if self.gray {
            self.store(target, pixels.map(|pixel| [luma(pixel)]));
        } else {
            self.store(target, pixels);
        }
    }

    /// Write pixels that are in the image's own format.
    fn store<const CHANNELS: usize>(
        &mut self,
        target: RowPixels,
        pixels: impl Iterator<Item = [u8; CHANNELS]>,
    ) {
        let range = self.row(target.y);
        let Some(row) = self.data.as_mut().get_mut(range) else { return };
        let slots = row.as_chunks_mut().0.get_mut(target.x..).unwrap_or_default();
        if target.step == 1 {
            // If the step is 1, the compiler copies many pixels at a time.
            slots.iter_mut().zip(pixels).for_each(|(slot, pixel)| *slot = pixel);
        } else {
            slots.iter_mut().step_by(target.step).zip(pixels).for_each(|(slot, p)| *slot = p);
        }
    }

    fn row(&self, y: usize) -> Range<usize> {
        let stride = self.size.width as usize * if self.gray { 1 } else { 3 };
        y * stride..(y + 1) * stride
    }

    pub(super) fn finish(self) -> Result<Pixels, ImageError> {
        Pixels::new(self.size, self.gray, self.data.freeze())
    }
}
