//! From pixels to a file's bytes.
//!
//! A JPEG and a PNG are written part by part, and in between the caller is asked whether to go on.
//! The WebP encoder cannot be stopped: like some decoders it relies on the caller, who refuses work
//! that would take too long. The memory of a JPEG's file is bounded by what its quality can make of
//! noise; a file that would be longer is refused.

mod file;

use std::io::Write;

use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;
use image_webp::WebPEncoder;

use self::file::File;
use crate::error::ImageError;
use crate::pixels::Pixels;
use crate::work::{Cost, Size, Workspace};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// JPEG, with all channels in full resolution.
    Jpeg {
        /// 1 to 100.
        quality: u8,
    },
    /// PNG, compressed fast.
    Png,
    /// WebP without loss, of at most 16384 pixels a side.
    WebpLossless,
}

/// Bytes of a file besides its pixels: headers and tables.
const HEADERS_BYTES: u64 = 8 << 10;

/// Maximum pixels of a WebP's side.
const WEBP_SIDE_MAX: u32 = 16_384;

/// The side of a JPEG's blocks, in pixels.
const BLOCK_SIDE: u32 = 8;

/// Bytes of a PNG's chunks, and of their length, name and checksum.
const CHUNK_BYTES: usize = 32 << 10;
const CHUNK_OWN_BYTES: u64 = 12;

/// Bytes that a PNG's encoder holds besides its rows.
const FILTERING_BYTES: u64 = 128 << 10;

/// The values of a PNG that are written between two checks, about.
const PART_BYTES: usize = 64 << 10;

/// Nanoseconds for each value of a JPEG, for each value of a PNG, and for each pixel of a WebP.
const JPEG_VALUE_NS: u64 = 20;
const PNG_VALUE_NS: u64 = 8;
const WEBP_PIXEL_NS: u64 = 40;

/// The measures of making a file.
struct Plan {
    /// Maximum bytes of the file.
    file_bytes: u64,
    /// Maximum bytes that are held at a time.
    bytes: u64,
    nanoseconds: u64,
}

impl Pixels {
    fn encode_plan(&self, format: Encoding) -> Result<Plan, ImageError> {
        let Size { width, height } = self.size();
        let (pixels, channels) = (self.size().pixels(), self.channels() as u64);
        Ok(match format {
            Encoding::Jpeg { quality } => {
                // Of noise, a value becomes less than this many bytes.
                let bytes_per_value = match quality {
                    1..=75 => 1,
                    76..=90 => 2,
                    91..=100 => 3,
                    _ => {
                        let why = format!("the quality of a JPEG is 1 to 100, not {quality}");
                        return Err(ImageError::InvalidArgument(why));
                    }
                };
                let side = |pixels: u32| u64::from(pixels.next_multiple_of(BLOCK_SIDE));
                let values = side(width) * side(height) * channels;
                let file_bytes = HEADERS_BYTES + values * bytes_per_value;
                Plan {
                    file_bytes,
                    bytes: File::bytes_held(file_bytes),
                    nanoseconds: 10_000 + values * JPEG_VALUE_NS,
                }
            }
            Encoding::Png => {
                let row = u64::from(width) * channels;
                let values = (row + 1) * u64::from(height);
                // The longest code of a value has 12 bits.
                let data = values + values / 2;
                let chunks = data / CHUNK_BYTES as u64 + 1;
                let file_bytes = HEADERS_BYTES + data + chunks * CHUNK_OWN_BYTES;
                let beside = FILTERING_BYTES + 8 * row;
                Plan {
                    file_bytes,
                    bytes: File::bytes_held(file_bytes) + beside,
                    nanoseconds: 10_000 + values * PNG_VALUE_NS,
                }
            }
            Encoding::WebpLossless => {
                if width.max(height) > WEBP_SIDE_MAX {
                    return Err(ImageError::InvalidArgument(format!(
                        "a side of a WebP has at most {WEBP_SIDE_MAX} pixels: this picture has \
                         {width}x{height}"
                    )));
                }
                // The codes of a pixel have 25 bits on average, if all its values are as frequent.
                let file_bytes = HEADERS_BYTES + pixels * 13 / 4;
                // The encoder makes pixels of four channels, and the data in a list that grows.
                Plan {
                    file_bytes,
                    bytes: 4 * pixels + 3 * file_bytes,
                    nanoseconds: 50_000 + pixels * WEBP_PIXEL_NS,
                }
            }
        })
    }

    /// The cost of [`encode`](Self::encode).
    ///
    /// # Errors
    /// [`ImageError::InvalidArgument`] if the quality is out of range, or the format has no
    /// pictures of this size.
    pub fn encode_cost(&self, format: Encoding) -> Result<Cost, ImageError> {
        let Plan { bytes, nanoseconds, .. } = self.encode_plan(format)?;
        Ok(Cost::new(usize::try_from(bytes).unwrap_or(usize::MAX), nanoseconds))
    }

    /// The image as a file.
    ///
    /// # Errors
    /// As for [`encode_cost`](Self::encode_cost), [`ImageError::TooLarge`] if a JPEG would be
    /// longer than any ordinary one, and [`ImageError::Stopped`] if the check of `work` refuses.
    pub fn encode(&self, work: Workspace<'_>, format: Encoding) -> Result<Vec<u8>, ImageError> {
        let limit = usize::try_from(self.encode_plan(format)?.file_bytes).unwrap_or(usize::MAX);
        (work.check)()?;
        let Size { width, height } = self.size();
        match format {
            Encoding::Jpeg { quality } => {
                let mut file = File::with_room(self.size(), limit).checked_by(work);
                let color =
                    if self.is_gray() { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 };
                let written = JpegEncoder::new_with_quality(&mut file, quality)
                    .encode(self.data(), width, height, color)
                    .map_err(failed);
                file.finish(written)
            }
            Encoding::Png => {
                let mut file = File::with_room(self.size(), limit);
                let written = self.write_png(work, &mut file);
                file.finish(written)
            }
            Encoding::WebpLossless => {
                let mut file = File::growing(self.size(), limit);
                let color = if self.is_gray() {
                    image_webp::ColorType::L8
                } else {
                    image_webp::ColorType::Rgb8
                };
                let written = WebPEncoder::new(&mut file)
                    .encode(self.data(), width, height, color)
                    .map_err(failed);
                file.finish(written)
            }
        }
    }

    /// Write a PNG, row by row. Its encoder would panic if the file refused a part.
    fn write_png(&self, work: Workspace<'_>, file: &mut File<'_>) -> Result<(), ImageError> {
        let mut encoder = png::Encoder::new(file, self.width(), self.height());
        encoder.set_color(if self.is_gray() {
            png::ColorType::Grayscale
        } else {
            png::ColorType::Rgb
        });
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header().map_err(failed)?;
        let mut rows = writer.stream_writer_with_size(CHUNK_BYTES).map_err(failed)?;
        let mut unchecked = 0;
        for row in self.data().chunks_exact(self.width() as usize * self.channels()) {
            rows.write_all(row).map_err(failed)?;
            unchecked += row.len();
            if unchecked >= PART_BYTES {
                (work.check)()?;
                unchecked = 0;
            }
        }
        rows.finish().map_err(failed)?;
        writer.finish().map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> ImageError {
    ImageError::InvalidArgument(format!("the picture cannot be encoded: {error}"))
}
