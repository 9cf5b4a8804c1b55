//! The colours that a JPEG's components stand for, decided as libjpeg decides it: a JFIF header
//! means YCbCr, also beside an Adobe marker that says something else.

use super::marker;

/// How components are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colors {
    Gray,
    YCbCr,
    Rgb,
    Cmyk,
    Ycck,
}

/// The markers of a header that say how colours are coded.
#[derive(Default)]
pub(super) struct Hints {
    has_jfif: bool,
    /// The transform that Adobe's marker names.
    adobe: Option<u8>,
}

/// The first bytes of the two markers, and the least bytes of their content.
const JFIF: (&[u8], usize) = (b"JFIF\0", 14);
const ADOBE: (&[u8], usize) = (b"Adobe", 12);

/// Components with these names are red, green and blue if no marker says otherwise.
pub(super) const RGB_NAMES: [u8; 3] = *b"RGB";

impl Hints {
    /// A segment of the header.
    pub(super) fn take(&mut self, kind: u8, data: &[u8]) {
        let is_of = |(first, len): (&[u8], usize)| data.starts_with(first) && data.len() >= len;
        match kind {
            marker::APP0 if is_of(JFIF) => self.has_jfif = true,
            marker::APP14 if is_of(ADOBE) => self.adobe = Some(data[ADOBE.1 - 1]),
            _ => {}
        }
    }

    /// The colours of components with these names. None if there are two of them or none.
    pub(super) fn colors(&self, names: &[u8]) -> Option<Colors> {
        match (names.len(), self.adobe) {
            (1, _) => Some(Colors::Gray),
            (3, Some(0)) if !self.has_jfif => Some(Colors::Rgb),
            (3, None) if !self.has_jfif && names == RGB_NAMES => Some(Colors::Rgb),
            (3, _) => Some(Colors::YCbCr),
            (4, Some(0) | None) => Some(Colors::Cmyk),
            (4, Some(_)) => Some(Colors::Ycck),
            _ => None,
        }
    }
}

impl Colors {
    /// Adobe's marker that says the same to zune-jpeg, if it needs one.
    pub(super) fn marker(self) -> Option<[u8; 16]> {
        let transform = match self {
            Self::Gray | Self::YCbCr => return None,
            Self::Rgb | Self::Cmyk => 0,
            Self::Ycck => 2,
        };
        let mut segment = *b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0";
        segment[15] = transform;
        Some(segment)
    }

    /// Whether the first component is the image in gray.
    pub(super) fn has_luma(self) -> bool {
        matches!(self, Self::Gray | Self::YCbCr)
    }
}
