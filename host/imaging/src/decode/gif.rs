//! GIF: decodes its first frame onto its screen, row by row.

use std::io::Read;
use std::ops::Range;

use gif::{ColorOutput, DecodeOptions as Settings};

use super::canvas::{Canvas, RowPixels};
use super::clock::Clock;
use super::options::{DecodeOptions, malformed};
use super::reader::Reader;
use super::walk::Walk;
use crate::error::{ImageError, Stopped};
use crate::work::{Size, Workspace};

/// The bytes of codes, palettes and a reader's buffer.
const DECODER_BYTES: u64 = 256 << 10;

/// The places of the file's parts that make up the first frame.
pub(super) struct FrameParts {
    pub(super) screen: Size,
    pub(super) frame: Size,
    /// The screen's description and palette.
    head: Range<usize>,
    /// The extension with the transparent colour, if there is one.
    control: Range<usize>,
    /// Where the frame begins.
    start: usize,
}

/// The bytes that decoding holds besides the file and the result.
pub(super) fn bytes(frame: Size) -> u64 {
    DECODER_BYTES + u64::from(frame.width)
}

impl FrameParts {
    /// Find the first frame, after at most `blocks_max` extensions.
    pub(super) fn find(
        bytes: &[u8],
        blocks_max: usize,
        walk: &mut Walk<'_>,
    ) -> Result<Option<Self>, Stopped> {
        let Some((screen, head)) = screen(bytes) else { return Ok(None) };
        let (mut start, mut control) = (head.end, 0..0);
        for _ in 0..blocks_max {
            match bytes.get(start) {
                Some(0x2c) => {
                    let frame = size(bytes, start + 5);
                    return Ok(frame.map(|frame| Self { screen, frame, head, control, start }));
                }
                Some(0x21) => {
                    let Some(end) = extension_end(bytes, start, walk)? else { return Ok(None) };
                    if bytes[start + 1] == 0xf9 {
                        control = start..end;
                    }
                    start = end;
                }
                _ => break,
            }
        }
        Ok(None)
    }

    pub(super) fn decode(
        &self,
        work: Workspace<'_>,
        bytes: &[u8],
        options: DecodeOptions,
    ) -> Result<Canvas, ImageError> {
        let part = |range: Range<usize>| bytes.get(range).unwrap_or_default();
        let control = part(self.control.clone());
        // An extension of another length is not of this kind.
        let control = if control.len() <= 8 { control } else { &[] };
        let frame = Reader::new(part(self.start..bytes.len()), work);
        let stream = part(self.head.clone()).chain(control).chain(frame);
        let mut settings = Settings::new();
        settings.set_color_output(ColorOutput::Indexed);
        let mut decoder = settings.read_info(stream).map_err(malformed)?;
        let frame = decoder.next_frame_info().map_err(malformed)?;
        let frame = frame.ok_or_else(|| malformed("no frame"))?.clone();
        let (width, height) = (usize::from(frame.width), usize::from(frame.height));
        if (self.frame.width as usize, self.frame.height as usize) != (width, height) {
            return Err(malformed("the header can be read in two ways"));
        }
        let palette = decoder.palette().map_err(malformed)?.as_chunks::<3>().0.to_vec();
        // Pixels without a colour stay black like the screen.
        let is_hidden = |index: u8| options.before_0_3 && frame.transparent == Some(index);
        let color = |index: &u8| match palette.get(usize::from(*index)) {
            Some(color) if !is_hidden(*index) => *color,
            _ => [0; 3],
        };
        let mut canvas = Canvas::new(work, self.screen, options);
        let mut row = vec![0; width];
        let mut clock = Clock::new(work);
        let passes: &[[usize; 2]] =
            if frame.interlaced { &[[0, 8], [4, 8], [2, 4], [1, 2]] } else { &[[0, 1]] };
        for &[first, step] in passes {
            for y in (first..height).step_by(step) {
                clock.poll_before_row(row.len());
                match decoder.fill_buffer(&mut row) {
                    Ok(true) => {}
                    _ if options.lenient => return Ok(canvas),
                    Ok(false) => return Err(malformed("the file is cut short")),
                    Err(error) => return Err(malformed(error)),
                }
                let target =
                    RowPixels { y: usize::from(frame.top) + y, x: frame.left.into(), step: 1 };
                canvas.put(target, row.iter().map(color));
            }
        }
        Ok(canvas)
    }
}

fn size(bytes: &[u8], start: usize) -> Option<Size> {
    let two = |at: usize| bytes.get(at..)?.first_chunk().map(|two| u16::from_le_bytes(*two).into());
    Some(Size { width: two(start)?, height: two(start + 2)? })
}

/// The screen's size, and the place of its description and palette.
fn screen(bytes: &[u8]) -> Option<(Size, Range<usize>)> {
    let flags = *bytes.get(10)?;
    let palette = if flags & 0x80 == 0 { 0 } else { 6 << (flags & 7) };
    let head = 0..13 + palette;
    bytes.get(head.clone())?;
    Some((size(bytes, 6)?, head))
}

/// The cost of a block, in steps of a walk: the next block may not be in a cache.
const BLOCK_STEPS: usize = 8;

/// The end of an extension: after its label come blocks, up to an empty one.
fn extension_end(
    bytes: &[u8],
    start: usize,
    walk: &mut Walk<'_>,
) -> Result<Option<usize>, Stopped> {
    let mut end = start + 2;
    while let Some(&len) = bytes.get(end) {
        walk.steps(BLOCK_STEPS)?;
        end += 1 + usize::from(len);
        if len == 0 {
            return Ok(Some(end));
        }
    }
    Ok(None)
}
