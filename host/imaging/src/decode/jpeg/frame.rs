//! A JPEG's header, up to its first scan.

use std::ops::Range;

use super::colors::{Colors, Hints};
use super::marker;
use crate::decode::options::malformed;
use crate::decode::walk::Walk;
use crate::error::ImageError;
use crate::error::Stopped;
use crate::work::Size;

/// Maximum segments in a header, or between two scans, including tables.
pub(super) const SEGMENTS_MAX: usize = 2000;

/// Nanoseconds for the scans of an image that has several.
const SCANS_NS: u64 = 5_000_000;

/// The first bytes of EXIF data.
const EXIF: &[u8] = b"Exif\0\0";

/// A header.
pub(crate) struct Frame {
    pub(crate) size: Size,
    /// The place of the EXIF data in the file.
    pub(crate) exif: Option<Range<usize>>,
    pub(super) is_progressive: bool,
    pub(super) colors: Colors,
    pub(super) components: Vec<Component>,
    /// Whether its codes come with it, as those of most images do.
    pub(super) has_codes: bool,
    /// The number of components in the first scan.
    first_scan: usize,
}

/// A colour channel: its sampling factors, and its table of quantisers.
#[derive(Clone, Copy)]
pub(super) struct Component {
    pub(super) id: u8,
    pub(super) across: u64,
    pub(super) down: u64,
    pub(super) quantiser: u8,
}

/// A marker and what belongs to it.
pub(super) struct Segment {
    pub(super) marker: u8,
    /// All bytes, from the marker's first byte on.
    pub(super) range: Range<usize>,
    /// Its content, without marker and length.
    pub(super) data: Range<usize>,
}

impl Segment {
    /// The segment that begins at `start`, or after bytes there that belong to no segment.
    pub(super) fn find(
        bytes: &[u8],
        start: usize,
        walk: &mut Walk<'_>,
    ) -> Result<Option<Self>, Stopped> {
        let mut from = start;
        loop {
            let Some(first) = walk.find(bytes, from, 0xff)? else { return Ok(None) };
            // Any number of 0xff bytes may stand before a marker's second byte.
            let Some(at) = walk.find_other(bytes, first + 1, 0xff)? else { return Ok(None) };
            if bytes[at] != marker::STUFFED {
                return Ok(Self::of(bytes, at));
            }
            from = at + 1;
        }
    }

    /// The segment whose marker's second byte is at `at`.
    fn of(bytes: &[u8], at: usize) -> Option<Self> {
        let marker = bytes[at];
        let range = at - 1..at + 1;
        if matches!(marker, marker::TEM | marker::RST_FIRST..=marker::EOI) {
            return Some(Self { marker, data: range.end..range.end, range });
        }
        let len: [u8; 2] = bytes.get(range.end..)?.first_chunk().copied()?;
        let end = range.end + usize::from(u16::from_be_bytes(len)).max(2);
        let is_whole = end <= bytes.len();
        is_whole.then(|| Self { marker, data: range.end + 2..end, range: range.start..end })
    }
}

impl Frame {
    pub(crate) fn read(bytes: &[u8], walk: &mut Walk<'_>) -> Result<Self, ImageError> {
        let mut header: Option<Self> = None;
        let mut exif = None;
        let mut has_codes = false;
        let mut hints = Hints::default();
        let mut next = 2;
        for _ in 0..SEGMENTS_MAX {
            let Some(segment) = Segment::find(bytes, next, walk)? else { break };
            next = segment.range.end;
            let data = &bytes[segment.data.clone()];
            match segment.marker {
                marker::DHT => has_codes = true,
                marker::JPG | marker::DAC => {}
                kind @ marker::SOF_BASELINE..=marker::SOF_LAST => {
                    if kind > marker::SOF_PROGRESSIVE {
                        return Err(malformed(format_args!(
                            "coded as {kind:#x}, which is not supported"
                        )));
                    }
                    if header.is_some() {
                        return Err(malformed("two frames"));
                    }
                    let frame = Self::of(data, kind == marker::SOF_PROGRESSIVE);
                    header = Some(frame.ok_or_else(|| malformed("the frame's header"))?);
                }
                marker::APP1 if exif.is_none() && data.starts_with(EXIF) => {
                    exif = Some(segment.data.start + EXIF.len()..segment.data.end);
                }
                marker::SOS => {
                    let mut frame = header.ok_or_else(|| malformed("a scan without a frame"))?;
                    frame.first_scan = data.first().copied().unwrap_or(0).into();
                    frame.exif = exif;
                    frame.has_codes = has_codes;
                    // zune-jpeg decodes such images to wrong pixels.
                    if !frame.is_progressive && !frame.is_one_scan() && frame.max() != (1, 1) {
                        return Err(malformed(
                            "components of several resolutions, each in a scan of its own, are not \
                             supported",
                        ));
                    }
                    let colors = hints.colors(&frame.names());
                    frame.colors =
                        colors.ok_or_else(|| malformed("no colours have two components"))?;
                    return Ok(frame);
                }
                marker::EOI => break,
                kind => hints.take(kind, data),
            }
        }
        Err(malformed("the header is damaged or cut short"))
    }

    fn of(data: &[u8], is_progressive: bool) -> Option<Self> {
        let [8, height_high, height_low, width_high, width_low, count, rest @ ..] = data else {
            return None;
        };
        let side = |high: &u8, low: &u8| u16::from_be_bytes([*high, *low]).into();
        let size =
            Size { width: side(width_high, width_low), height: side(height_high, height_low) };
        let component = |[id, sampling, quantiser]: &[u8; 3]| {
            let (across, down) = (u64::from(sampling >> 4), u64::from(sampling & 15));
            let is_fair = (1..=4).contains(&across) && (1..=4).contains(&down);
            let (id, quantiser) = (*id, *quantiser);
            is_fair.then_some(Component { id, across, down, quantiser })
        };
        let components: Option<Vec<_>> = rest.as_chunks().0.iter().map(component).collect();
        let components = components
            .filter(|list| (1..=4).contains(&list.len()) && list.len() == usize::from(*count))?;
        let colors = Colors::YCbCr;
        let (exif, has_codes, first_scan) = (None, false, 0);
        Some(Self { size, exif, is_progressive, colors, components, has_codes, first_scan })
    }

    /// The names of its components.
    pub(super) fn names(&self) -> Vec<u8> {
        self.components.iter().map(|component| component.id).collect()
    }

    /// Whether each row is complete when it is read, because all components come in a single scan.
    pub(super) fn is_one_scan(&self) -> bool {
        !self.is_progressive && self.first_scan == self.components.len()
    }

    /// Nanoseconds for scans whose number and content the header does not say. More than what is
    /// done on a serving thread, because a scan of a few bytes can come to all blocks.
    pub(super) fn scans_ns(&self) -> u64 {
        if self.is_one_scan() { 0 } else { SCANS_NS }
    }

    /// Pixels times components.
    pub(super) fn samples(&self) -> u64 {
        self.size.pixels() * self.components.len() as u64
    }

    fn max(&self) -> (u64, u64) {
        let across = self.components.iter().map(|component| component.across).max();
        let down = self.components.iter().map(|component| component.down).max();
        (across.unwrap_or(1), down.unwrap_or(1))
    }

    /// The bytes of the components' samples that zune-jpeg holds while it works on one row of
    /// blocks.
    pub(super) fn row_bytes(&self) -> u64 {
        let (across, down) = self.max();
        let mut so_far = 1;
        let mut bytes = 0;
        for component in &self.components {
            so_far = so_far.max(component.across);
            // In the order in which the decoder processes them.
            let stride = component.across * u64::from(self.size.width).div_ceil(8 * so_far) * 8;
            let grown = (across / component.across).max(1) * (down / component.down).max(1);
            let samples = stride
                * (component.down * 8
                    + grown * 16
                    + 2 * component.down
                    + component.down * grown
                    + 8);
            bytes += samples * 2;
        }
        bytes
    }

    /// The bytes of all coefficients, which the decoder stores if they come in several scans.
    pub(super) fn coefficient_bytes(&self, gray: bool) -> u64 {
        let (across, down) = self.max();
        let blocks = |side: u32, factor: u64| u64::from(side).div_ceil(8 * factor);
        let units = blocks(self.size.width, across) * blocks(self.size.height, down);
        let in_units: u64 = self.components.iter().map(|c| c.across * c.down).sum();
        let taller = if gray { down.div_ceil(across) } else { 1 };
        units * in_units * 64 * 2 * taller
    }
}
