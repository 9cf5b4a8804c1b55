//! Decompressing a page into as many bytes as its head says: no more, and no fewer.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::reused::Reused;
use crate::error::{Check, TableError, Work};

/// How many bytes are decompressed between two checks.
const BETWEEN_CHECKS: usize = 128 << 10;

/// A block of Zstandard, which its decoder holds besides its window.
const BLOCK_BYTES: usize = 128 << 10;

/// The decoder's ring is the window, rounded up, and is copied when it grows.
const WINDOWS: usize = 4;

/// How the pages of a chunk are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Snappy,
    Gzip,
    Zstd,
}

impl Codec {
    /// None: they are not compressed.
    ///
    /// # Errors
    /// The name of one that is not read.
    pub(super) fn of(code: u8) -> Result<Option<Self>, &'static str> {
        match code {
            0 => Ok(None),
            1 => Ok(Some(Self::Snappy)),
            2 => Ok(Some(Self::Gzip)),
            6 => Ok(Some(Self::Zstd)),
            3 => Err("lzo"),
            4 => Err("brotli"),
            5 | 7 => Err("lz4"),
            _ => Err("an unknown codec"),
        }
    }

    /// Fill `target` with what `page` is compressed from. None: `page` is something else.
    pub(super) fn decompress(
        self,
        page: &[u8],
        target: &mut [u8],
        window: &mut Reused,
        work: &mut Work<'_>,
    ) -> Result<Option<()>, TableError> {
        if self == Self::Zstd {
            let Some(bytes) = window_of(page, target.len()) else { return Ok(None) };
            window.fit(bytes.max(BLOCK_BYTES).saturating_mul(WINDOWS), work)?;
        }
        (work.check)()?;
        // The decoders are not ours: if one panics, it is the file's fault.
        let decompressing = AssertUnwindSafe(|| self.fill(page, target, work.check));
        let filled = catch_unwind(decompressing).unwrap_or(None);
        if filled.is_none() {
            // A page looks broken, too, if the work was stopped within it.
            (work.check)()?;
        }
        Ok(filled)
    }

    fn fill(self, page: &[u8], target: &mut [u8], check: Check<'_>) -> Option<()> {
        let source = Asking { rest: page, check };
        match self {
            Self::Snappy => {
                let written = snap::raw::Decoder::new().decompress(page, target);
                (written.ok()? == target.len()).then_some(())
            }
            Self::Gzip => fill_from(MultiGzDecoder::new(source), target, check),
            Self::Zstd => {
                let window = window_of(page, target.len())? as u64;
                let decoder = StreamingDecoder::new_with_max_window_size(source, window);
                fill_from(decoder.ok()?, target, check)
            }
        }
    }
}

/// What is left of a page. Asks before each read, because parts that have nothing take time, too.
struct Asking<'a> {
    rest: &'a [u8],
    check: Check<'a>,
}

impl Read for Asking<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        (self.check)().map_err(io::Error::other)?;
        self.rest.read(target)
    }
}

/// Read `target` and the end.
fn fill_from(mut source: impl Read, target: &mut [u8], check: Check<'_>) -> Option<()> {
    for part in target.chunks_mut(BETWEEN_CHECKS) {
        check().ok()?;
        source.read_exact(part).ok()?;
    }
    (source.read(&mut [0]).ok()? == 0).then_some(())
}

/// The window that the head of a Zstandard frame asks for, of a page with so many bytes.
fn window_of(frame: &[u8], bytes: usize) -> Option<usize> {
    const SINGLE_SEGMENT: u8 = 0x20;
    let (descriptor, window) = (*frame.get(4)?, *frame.get(5)?);
    if descriptor & SINGLE_SEGMENT != 0 {
        return Some(bytes);
    }
    let base = 1_usize << (10 + (window >> 3));
    Some(base + base / 8 * usize::from(window & 7))
}
