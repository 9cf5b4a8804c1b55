//! The parts of a JPEG that make up its image, assembled for the decoder.
//!
//! Tables and scans are kept in their order, up to the scan that completes the image. Profiles,
//! comments and bytes between segments are left out. After the last scan comes a padding of ones,
//! which is not a valid code.

use super::colors::{Colors, RGB_NAMES};
use super::frame::{Frame, SEGMENTS_MAX, Segment};
use super::marker;
use super::progress::{Progress, is_progression};
use crate::decode::options::malformed;
use crate::decode::walk::{BETWEEN, Walk};
use crate::error::ImageError;
use crate::error::Stopped;
use crate::work::Workspace;

/// Maximum scans of one image. Encoders make about twenty at most.
pub(super) const SCANS_MAX: usize = 100;

/// Ones, each byte with its stuffing byte, as in a scan.
const PADDING: [u8; 64] = {
    let mut padding = [0; 64];
    let mut at = 0;
    while at < padding.len() {
        padding[at] = 0xff;
        at += 2;
    }
    padding
};

/// The first bytes of an `APP0` that is kept: the frame of a film, which may have no tables.
const FILM: &[u8] = b"AVI1\0";
const FILM_BYTES_MAX: usize = 64;

/// The name that a component gets in place of `R` where the components are not red, green and
/// blue. zune-jpeg goes by the names.
const OTHER_NAME: u8 = b'Y';

/// The bytes that the decoder reads.
pub(super) struct Stream {
    pub(super) bytes: Vec<u8>,
    /// The position of the padding.
    pub(super) padding: usize,
    /// Whether it has one scan, with all components.
    pub(super) is_one_scan: bool,
}

/// The scans of a file that are used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Those of an image that is complete, or that its file says has ended.
    Whole,
    /// All that are there. The last one may be damaged.
    There,
    /// All but the last one.
    WithoutLast,
}

/// The bytes of a stream that are not in the file: markers, and the padding.
const ADDED_BYTES: usize = 2 + 16 + PADDING.len() + 2;

/// Maximum bytes of a stream that is made of a file of `file` bytes.
pub(super) fn len_max(file: u64) -> u64 {
    file + ADDED_BYTES as u64
}

/// The stream for `frame`, which was read from `bytes`.
pub(super) fn assemble(
    frame: &Frame,
    bytes: &[u8],
    work: Workspace<'_>,
    extent: Extent,
) -> Result<Stream, ImageError> {
    let mut stream = Vec::with_capacity(len_max(bytes.len() as u64) as usize);
    stream.extend([0xff, marker::SOI]);
    stream.extend(frame.colors.marker().iter().flatten());
    let mut walk = Walk::new(work.check);
    let mut progress = Progress::new(frame);
    let (mut next, mut scans, mut last_scan, mut has_ended) = (2, 0, 0, false);
    for count in 0.. {
        if progress.is_complete() {
            break;
        }
        if count > SEGMENTS_MAX {
            return Err(malformed("too many segments"));
        }
        let Some(segment) = Segment::find(bytes, next, &mut walk)? else { break };
        next = segment.range.end;
        let data = &bytes[segment.data.clone()];
        match segment.marker {
            marker::EOI => {
                has_ended = true;
                break;
            }
            marker::APP0 if data.starts_with(FILM) && data.len() <= FILM_BYTES_MAX => {}
            marker::SOF_BASELINE..=marker::SOF_LAST | marker::DQT | marker::DRI | marker::SOS => {}
            _ => continue,
        }
        let start = stream.len();
        stream.extend_from_slice(&bytes[segment.range.clone()]);
        rename(frame, &segment, &mut stream[start..]);
        if segment.marker == marker::SOS {
            (scans, last_scan) = (scans + 1, start);
            if scans > SCANS_MAX {
                return Err(malformed("too many scans"));
            }
            if frame.is_progressive && !is_progression(data) {
                return Err(malformed("a scan of coefficients that do not exist"));
            }
            if !progress.take(frame, data) {
                return Err(malformed("two scans have the same component"));
            }
            let end = scan_end(bytes, next, &mut walk)?;
            let coded = match end {
                Some(end) => end,
                None => without_filling(bytes, next, &mut walk)?,
            };
            stream.extend_from_slice(&bytes[next..coded]);
            (work.check)()?;
            next = end.unwrap_or(bytes.len());
        }
    }
    if progress.lacks_a_component() {
        return Err(malformed("a component has no scan"));
    }
    let is_whole = has_ended || progress.is_complete();
    match extent {
        Extent::Whole if !is_whole => return Err(malformed("the file is cut short")),
        Extent::WithoutLast if scans > 1 => {
            stream.truncate(last_scan);
            scans -= 1;
        }
        _ => {}
    }
    let padding = stream.len();
    // The decoder needs a marker directly after the first scan.
    let is_one_progressive_scan = frame.is_progressive && scans == 1;
    if !is_one_progressive_scan {
        stream.extend(PADDING);
    }
    stream.extend([0xff, marker::EOI]);
    Ok(Stream { bytes: stream, padding, is_one_scan: frame.is_one_scan() })
}

/// The names of the components in a stream.
pub(super) fn names(frame: &Frame) -> Vec<u8> {
    let mut names = frame.names();
    if is_renamed(frame) {
        names[0] = OTHER_NAME;
    }
    names
}

/// Whether zune-jpeg would take the components for red, green and blue, because of their names.
fn is_renamed(frame: &Frame) -> bool {
    frame.colors != Colors::Rgb && frame.names() == RGB_NAMES
}

/// Rename the components in a copy of their segment, if they need other names.
fn rename(frame: &Frame, segment: &Segment, copy: &mut [u8]) {
    if !is_renamed(frame) {
        return;
    }
    let data = &mut copy[segment.data.start - segment.range.start..];
    // The number of names, before the first; from a name to the next one.
    let (first, step) = match segment.marker {
        marker::SOF_BASELINE | marker::SOF_EXTENDED | marker::SOF_PROGRESSIVE => (6, 3),
        marker::SOS => (1, 2),
        _ => return,
    };
    let count = data.get(first - 1).copied().unwrap_or(0).into();
    let names = data.iter_mut().skip(first).step_by(step).take(count);
    names.filter(|name| **name == RGB_NAMES[0]).for_each(|name| *name = OTHER_NAME);
}

/// The end of the coded data that begin at `start`: the next marker that is not part of them. None
/// if they go on to the end of the file.
fn scan_end(bytes: &[u8], start: usize, walk: &mut Walk<'_>) -> Result<Option<usize>, Stopped> {
    let mut from = start;
    while let Some(at) = walk.find(bytes, from, 0xff)? {
        match bytes.get(at + 1) {
            Some(&marker::STUFFED | &(marker::RST_FIRST..=marker::RST_LAST)) => from = at + 2,
            Some(0xff) => from = at + 1,
            Some(_) => return Ok(Some(at)),
            None => break,
        }
    }
    Ok(None)
}

/// The end of the coded data that begin at `start` and that no marker ends, without the zeros
/// behind them. A file that was cut short may be filled up with zeros, and they would decode to
/// pixels. One byte of zeros can be data, and another one stuffs the byte before.
fn without_filling(bytes: &[u8], start: usize, walk: &mut Walk<'_>) -> Result<usize, Stopped> {
    let mut end = bytes.len();
    for part in bytes[start..].rchunks(BETWEEN) {
        walk.steps(part.len())?;
        let last = part.iter().rposition(|byte| *byte != 0);
        end -= part.len() - last.map_or(0, |last| last + 1);
        if last.is_some() {
            break;
        }
    }
    let kept = if bytes[..end].ends_with(&[0xff]) { 2 } else { 1 };
    Ok((end + kept).min(bytes.len()))
}
