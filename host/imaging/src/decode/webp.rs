//! WebP: finding the chunks that make up the image, estimating their cost, and decoding them.

use std::ops::Range;

use image_webp::WebPDecoder;

use super::bytes::{CHUNKS_MAX, at, little_u16, little_u24, little_u32};
use super::canvas::{Canvas, Format};
use super::options::malformed;
use super::reader::Reader;
use super::vp8l::Stream;
use super::walk::Walk;
use super::whole::{Shape, check_size, copied};
use crate::error::ImageError;
use crate::work::{Size, Workspace};

/// The bytes that a frame's coded data may claim before the decoder finds that the file is too
/// short, and those of tables.
const LOSSY_BYTES: u64 = 18 << 20;
const LOSSLESS_BYTES: u64 = 1 << 20;

/// Nanoseconds for each pixel and each byte of a lossless image, and for each KiB of its codes'
/// tables.
const LOSSLESS_PIXEL_NS: u64 = 65;
const LOSSLESS_BYTE_NS: u64 = 15;
const CODE_NS_PER_KIB: u64 = 500;

/// Nanoseconds for a lossy image's pixel, and for its coefficients. The decoder cannot be stopped
/// in the middle of them, so the figures are those of the worst files. In such a file a little more
/// than one bit makes a coefficient of six decisions, until all coefficients are used; further bits
/// make the coefficients larger, up to the maximum. Photos take half of this time.
const LOSSY_PIXEL_NS: u64 = 55;
const FIRST_PIXELS_PER_BYTE: u64 = 5;
const FIRST_BYTE_NS: u64 = 300;
const FURTHER_BYTE_NS: u64 = 120;
const COEFFICIENTS_NS_MAX: u64 = 210;

/// Nanoseconds for the transparency of each pixel of a lossy image.
const ALPHA_PIXEL_NS: u64 = 45;

/// Nanoseconds to lay a pixel of an animation's frame on its canvas.
const FRAME_PIXEL_NS: u64 = 15;

/// The properties of a WebP that decoding depends on.
pub(super) struct WebP {
    is_lossy: bool,
    is_animated: bool,
    has_alpha: bool,
    /// The bytes that the decoder holds for lossless codes.
    code_bytes: u64,
}

impl WebP {
    /// The bytes that decoding holds besides the file and the result.
    pub(super) fn bytes(&self, size: Size, file: u64) -> u64 {
        // Lossy: planes of brightness and colour, with their borders, and alpha, decoded as a
        // image of four channels. Lossless: pixels of four channels, and the images that choose
        // transforms and codes. Then the pixels that the decoder's caller gets.
        let alpha = if self.has_alpha { 1 + 4 } else { 0 };
        let samples = if self.is_lossy { 2 + alpha } else { 4 + 2 };
        let fixed = if self.is_lossy { LOSSY_BYTES } else { LOSSLESS_BYTES };
        let animated = if self.is_animated { 8 } else { 0 };
        fixed + 2 * file + (samples + 4 + animated) * size.pixels() + self.code_bytes
    }

    pub(super) fn nanoseconds(&self, size: Size, file: u64) -> u64 {
        let pixels = size.pixels();
        let canvas = if self.is_animated { pixels * FRAME_PIXEL_NS } else { 0 };
        let beside = canvas + self.code_bytes / 1024 * CODE_NS_PER_KIB;
        if !self.is_lossy {
            return pixels * LOSSLESS_PIXEL_NS + file * LOSSLESS_BYTE_NS + beside;
        }
        let first = file.min(pixels / FIRST_PIXELS_PER_BYTE);
        let coefficients = first * FIRST_BYTE_NS + (file - first) * FURTHER_BYTE_NS;
        let coefficients = coefficients.min(pixels * COEFFICIENTS_NS_MAX);
        let alpha =
            if self.has_alpha { pixels * ALPHA_PIXEL_NS + file * LOSSLESS_BYTE_NS } else { 0 };
        pixels * LOSSY_PIXEL_NS + coefficients + alpha + beside
    }

    pub(super) fn decode(
        &self,
        work: Workspace<'_>,
        bytes: &[u8],
        shape: Shape,
    ) -> Result<Canvas, ImageError> {
        let mut decoder = WebPDecoder::new(Reader::new(bytes, work)).map_err(malformed)?;
        check_size(decoder.dimensions(), shape.size)?;
        let format = if decoder.has_alpha() { Format::Rgba } else { Format::Rgb };
        let mut all = vec![0; shape.size.pixels() as usize * format.channels()];
        decoder.read_image(&mut all).map_err(malformed)?;
        Ok(copied(work, &all, format, shape))
    }
}

/// The places of a file's parts.
pub(super) struct Layout<'a> {
    pub(super) canvas: Size,
    pub(super) exif: Option<Range<usize>>,
    is_lossy: bool,
    is_animated: bool,
    has_alpha: bool,
    /// The part of the image that is coded losslessly.
    lossless: Vec<Stream<'a>>,
}

/// The chunks that an image is made from.
#[derive(Default)]
struct Found<'a> {
    /// Size of the image, and whether it is lossy.
    image: Option<(Size, bool)>,
    alpha: Option<&'a [u8]>,
    lossless: Vec<Stream<'a>>,
}

impl<'a> Layout<'a> {
    /// There are three kinds of files: a lossy image, a lossless image, or a canvas with
    /// chunks. Of several chunks of one kind the first one counts.
    pub(super) fn find(bytes: &'a [u8]) -> Option<Self> {
        // The decoder does not check that parts which it need not read are complete.
        bytes.get(8..8 + little_u32(bytes, 4)? as usize)?;
        let first = Chunk::at(bytes, 12)?;
        let mut parts = Found::default();
        if &first.name != b"VP8X" {
            parts.take(bytes, &first)?;
            let (canvas, is_lossy) = parts.image?;
            let lossless = parts.lossless;
            let (is_animated, has_alpha) = (false, false);
            return Some(Self { canvas, exif: None, is_lossy, is_animated, has_alpha, lossless });
        }
        let start = first.data.start;
        let is_animated = bytes.get(start)? & 2 != 0;
        let side = |start| Some(little_u24(bytes, start)? + 1);
        let canvas = Size { width: side(start + 4)?, height: side(start + 7)? };
        let (mut exif, mut frame_size, mut next) = (None, canvas, first.end);
        for seen in 0.. {
            let Some(chunk) = Chunk::at(bytes, next) else { break };
            next = chunk.end;
            if seen == CHUNKS_MAX {
                // An animation may have any number of frames.
                if is_animated && parts.image.is_some() {
                    break;
                }
                return None;
            }
            match &chunk.name {
                b"EXIF" => exif = exif.or(Some(chunk.data)),
                b"ANMF" if is_animated && parts.image.is_none() => {
                    let start = chunk.data.start;
                    frame_size = Size { width: side(start + 6)?, height: side(start + 9)? };
                    // The frame's place, then the chunks of its image.
                    let part = Chunk::at(bytes, start + 16)?;
                    parts.take(bytes, &part)?;
                    if &part.name == b"ALPH" {
                        // The decoder takes the next chunk as lossy and does not look at its name.
                        let part = Chunk::at(bytes, part.end)?;
                        parts.take(bytes, &part).filter(|()| &part.name == b"VP8 ")?;
                    }
                }
                // The decoder would take the chunks of a frame for those of the image.
                b"ANMF" if !is_animated => return None,
                _ if !is_animated => parts.take(bytes, &chunk)?,
                _ => {}
            }
        }
        let (size, is_lossy) = parts.image?;
        // The decoder decodes it before it finds that it does not fit.
        let fits = |size: Size| size.width <= canvas.width && size.height <= canvas.height;
        if !fits(size) || !fits(frame_size) {
            return None;
        }
        let mut lossless = parts.lossless;
        // The method is in its first byte: uncompressed or lossless.
        if let Some([method, data @ ..]) = parts.alpha
            && method & 3 == 1
        {
            lossless.push(Stream { data, size: frame_size, has_header: false });
        }
        let has_alpha = parts.alpha.is_some();
        Some(Self { canvas, exif, is_lossy, is_animated, has_alpha, lossless })
    }

    /// Measure the memory of the codes.
    pub(super) fn measure(&self, walk: &mut Walk<'_>) -> Result<WebP, ImageError> {
        let mut code_bytes = 0;
        for stream in &self.lossless {
            code_bytes += stream.code_bytes(walk)?;
        }
        let Self { is_lossy, is_animated, has_alpha, .. } = *self;
        Ok(WebP { is_lossy, is_animated, has_alpha, code_bytes })
    }
}

impl<'a> Found<'a> {
    /// Take a chunk, if it is the first of its kind. None if it is cut short.
    fn take(&mut self, bytes: &'a [u8], chunk: &Chunk) -> Option<()> {
        let data = bytes.get(chunk.data.start..chunk.data.end.min(bytes.len()))?;
        match &chunk.name {
            b"VP8 " if self.image.is_none() => self.image = Some((lossy_size(data)?, true)),
            b"VP8L" if self.lossless.is_empty() => {
                let size = lossless_size(data)?;
                self.lossless.push(Stream { data, size, has_header: true });
                self.image = self.image.or(Some((size, false)));
            }
            b"ALPH" => self.alpha = self.alpha.or(Some(data)),
            _ => {}
        }
        Some(())
    }
}

fn lossy_size(data: &[u8]) -> Option<Size> {
    let side = |start| little_u16(data, start).map(|side| side & 0x3fff);
    Some(Size { width: side(6)?, height: side(8)? })
}

fn lossless_size(data: &[u8]) -> Option<Size> {
    let sides = little_u32(data, 1)?;
    Some(Size { width: 1 + (sides & 0x3fff), height: 1 + (sides >> 14 & 0x3fff) })
}

/// A chunk of a file.
struct Chunk {
    name: [u8; 4],
    data: Range<usize>,
    /// The position of the next chunk.
    end: usize,
}

impl Chunk {
    fn at(bytes: &[u8], start: usize) -> Option<Self> {
        let name = at(bytes, start)?;
        let len = little_u32(bytes, start + 4)? as usize;
        let data = start + 8..start + 8 + len;
        Some(Self { name, end: data.end + len % 2, data })
    }
}
