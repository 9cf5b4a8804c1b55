//! How much of an image the scans of a JPEG have brought. An image is complete when each
//! coefficient of each component has all of its bits; what follows in the file is not its own.

use super::frame::Frame;

/// The position of the lowest bit of a coefficient that has none yet.
const NONE: u8 = u8::MAX;

/// The lowest bit so far of each coefficient of each component.
pub(super) struct Progress {
    lowest_bits: Vec<[u8; 64]>,
}

impl Progress {
    pub(super) fn new(frame: &Frame) -> Self {
        Self { lowest_bits: vec![[NONE; 64]; frame.components.len()] }
    }

    /// A scan with this header. False if it brings a component of a baseline image once more: the
    /// time of such scans would not be bounded by what they bring.
    pub(super) fn take(&mut self, frame: &Frame, scan: &[u8]) -> bool {
        let [count, rest @ ..] = scan else { return true };
        let band = match *scan {
            [.., first, last, bits] if frame.is_progressive => (first, last, bits & 15),
            _ => (0, 63, 0),
        };
        let (first, last, bit) = band;
        for [id, _] in rest.as_chunks().0.iter().take((*count).into()) {
            let index = frame.components.iter().position(|component| component.id == *id);
            let bits = index.and_then(|index| self.lowest_bits.get_mut(index));
            if !frame.is_progressive && bits.as_ref().is_some_and(|bits| bits[0] != NONE) {
                return false;
            }
            let band = bits.and_then(|bits| bits.get_mut(first.into()..=last.into()));
            band.unwrap_or_default().fill(bit);
        }
        true
    }

    /// Whether a component has had no scan.
    pub(super) fn lacks_a_component(&self) -> bool {
        self.lowest_bits.iter().any(|bits| bits[0] == NONE)
    }

    /// Whether the image is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.lowest_bits.as_flattened().iter().all(|bit| *bit == 0)
    }
}

/// Whether a progressive image can have a scan with this header.
pub(super) fn is_progression(scan: &[u8]) -> bool {
    let [components, .., first, last, bits] = *scan else { return false };
    let (before, after) = (bits >> 4, bits & 15);
    let is_band =
        if first == 0 { last == 0 } else { components == 1 && first <= last && last < 64 };
    is_band && before <= 13 && after <= 13 && (before == 0 || before == after + 1)
}
