//! The parts of a JPEG that make up its picture, assembled for the decoder.
//!
//! Tables and scans are kept in their order. Profiles, comments and bytes between segments are left
//! out. After the last scan comes a padding of ones, which is not a valid code.

use super::frame::{Frame, SEGMENTS_MAX, Segment, marker};
use crate::decode::options::malformed;
use crate::decode::walk::Walk;
use crate::error::ImageError;
use crate::error::Stopped;
use crate::work::Workspace;

/// The most scans of one picture. Encoders make about twenty at most.
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

/// The largest segment that is kept and is not a table. `APP0` and `APP14` say how colours are
/// coded.
const HINT_BYTES_MAX: usize = 64;

/// The bytes that the decoder reads.
pub(super) struct Stream {
    pub(super) bytes: Vec<u8>,
    /// The position of the padding.
    pub(super) padding: usize,
    /// Whether it has one scan, with all components.
    pub(super) is_one_scan: bool,
}

/// The most bytes of a stream that is made of a file of `file` bytes.
pub(super) fn len_max(file: u64) -> u64 {
    file + PADDING.len() as u64 + 4
}

/// The stream for `frame`, which was read from `bytes`.
pub(super) fn assemble(
    frame: &Frame,
    bytes: &[u8],
    work: Workspace<'_>,
    lenient: bool,
) -> Result<Stream, ImageError> {
    let mut stream = Vec::with_capacity(len_max(bytes.len() as u64) as usize);
    stream.extend([0xff, marker::SOI]);
    let mut walk = Walk::new(work.check);
    let mut seen = vec![false; frame.components.len()];
    let (mut next, mut scans, mut has_ended) = (2, 0, false);
    let mut last_scan = 0;
    for count in 0.. {
        if count > SEGMENTS_MAX {
            return Err(malformed("too many segments"));
        }
        let Some(segment) = Segment::find(bytes, next, &mut walk)? else { break };
        next = segment.range.end;
        let is_done = scans > 0 && frame.is_one_scan();
        let is_kept = match segment.marker {
            marker::EOI => {
                has_ended = true;
                break;
            }
            _ if is_done => false,
            marker::APP0 | marker::APP14 => segment.range.len() <= HINT_BYTES_MAX,
            marker::SOF_BASELINE..=marker::SOF_LAST | marker::DQT | marker::DRI | marker::SOS => {
                true
            }
            _ => false,
        };
        if !is_kept {
            if segment.marker == marker::SOS {
                next = scan_end(bytes, next, &mut walk)?;
            }
            continue;
        }
        if segment.marker == marker::SOS {
            last_scan = stream.len();
        }
        stream.extend_from_slice(&bytes[segment.range.clone()]);
        if segment.marker == marker::SOS {
            scans += 1;
            if scans > SCANS_MAX {
                return Err(malformed("too many scans"));
            }
            let scan = &bytes[segment.data.clone()];
            if frame.is_progressive && !is_progression(scan) {
                return Err(malformed("a scan of coefficients that do not exist"));
            }
            note(frame, &mut seen, scan);
            let end = scan_end(bytes, next, &mut walk)?;
            stream.extend_from_slice(&bytes[next..end]);
            (work.check)()?;
            next = end;
        }
    }
    let is_complete = has_ended || (lenient && (frame.is_one_scan() || scans > 1));
    if !is_complete {
        return Err(malformed("the file is cut short"));
    }
    if !has_ended && !frame.is_one_scan() {
        // The scans before this one also make a picture.
        stream.truncate(last_scan);
        scans -= 1;
    }
    if seen.contains(&false) {
        return Err(malformed("a component has no scan"));
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

/// Whether a progressive picture can have a scan with this header.
fn is_progression(scan: &[u8]) -> bool {
    let [components, .., first, last, bits] = *scan else { return false };
    let (before, after) = (bits >> 4, bits & 15);
    let is_band =
        if first == 0 { last == 0 } else { components == 1 && first <= last && last < 64 };
    is_band && before <= 13 && after <= 13 && (before == 0 || before == after + 1)
}

/// Note which components a scan has.
fn note(frame: &Frame, seen: &mut [bool], scan: &[u8]) {
    let [count, rest @ ..] = scan else { return };
    for [id, _] in rest.as_chunks().0.iter().take((*count).into()) {
        let component = frame.components.iter().position(|component| component.id == *id);
        if let Some(index) = component {
            seen[index] = true;
        }
    }
}

/// The end of the coded data that begin at `start`: the next marker that is not part of them, or
/// the end of the file.
fn scan_end(bytes: &[u8], start: usize, walk: &mut Walk<'_>) -> Result<usize, Stopped> {
    let mut from = start;
    while let Some(at) = walk.find(bytes, from, 0xff)? {
        match bytes.get(at + 1) {
            Some(&marker::STUFFED | &(marker::RST_FIRST..=marker::RST_LAST)) => from = at + 2,
            Some(0xff) => from = at + 1,
            Some(_) => return Ok(at),
            None => break,
        }
    }
    Ok(bytes.len())
}
