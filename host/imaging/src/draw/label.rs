//! Text, in a font of 8 by 8 pixels.

use font8x8::legacy::{BASIC_LEGACY, GREEK_LEGACY, LATIN_LEGACY};

use super::brush::{Area, Brush};
use super::shape::Label;
use crate::error::Stopped;
use crate::work::Size;

/// The rows of a character. The lowest bit is the pixel to the left.
type Glyph = [u8; GLYPH_SIDE];

const GLYPH_SIDE: usize = 8;

/// The characters of the font, and the first of each part.
static ASCII: [Glyph; 128] = BASIC_LEGACY;
static LATIN: [Glyph; 96] = LATIN_LEGACY;
static GREEK: [Glyph; 58] = GREEK_LEGACY;
const LATIN_FIRST: u32 = 0xa0;
const GREEK_FIRST: u32 = 0x390;

/// A character that the font lacks.
const MISSING: Glyph = [0x7e, 0x42, 0x42, 0x42, 0x42, 0x42, 0x7e, 0];

/// Maximum runs of pixels in a row of a character.
const RUNS: u64 = GLYPH_SIDE as u64 / 2;

fn glyph_of(character: char) -> Glyph {
    let code = u32::from(character);
    let in_part = |part: &'static [Glyph], first: u32| {
        code.checked_sub(first).and_then(|index| part.get(index as usize)).copied()
    };
    if character.is_control() {
        return MISSING;
    }
    let found = in_part(&ASCII, 0)
        .or_else(|| in_part(&LATIN, LATIN_FIRST))
        .or_else(|| in_part(&GREEK, GREEK_FIRST));
    // The tables have nothing for numbers without a character.
    let is_empty = |glyph: &Glyph| *glyph == [0; GLYPH_SIDE] && !character.is_whitespace();
    found.filter(|glyph| !is_empty(glyph)).unwrap_or(MISSING)
}

/// The squares of the characters that are within the image, at least in part.
fn squares(label: &Label, size: Size) -> impl Iterator<Item = (char, Area)> + '_ {
    let side = i64::from(label.size) * GLYPH_SIDE as i64;
    let square = move |(index, character): (usize, char)| {
        let left = i64::from(label.x) + index as i64 * side;
        (character, Area::at(left, label.y.into(), side, side))
    };
    label.text.chars().enumerate().map(square).filter(move |(_, square)| {
        let Area { left, top, right, bottom } = square.within(size);
        left < right && top < bottom
    })
}

/// Nanoseconds to draw it.
pub(super) fn label_ns(label: &Label, size: Size) -> u64 {
    squares(label, size)
        .map(|(_, square)| {
            // Each row of the image is filled run by run.
            let row = Area { right: square.left + 1, ..square };
            square.within(size).cost_ns() + RUNS * row.cost_ns()
        })
        .sum()
}

pub(super) fn draw_label(brush: &mut Brush<'_>, label: &Label) -> Result<(), Stopped> {
    let side = i64::from(label.size);
    for (character, square) in squares(label, brush.size) {
        for (y, bits) in (0..).zip(glyph_of(character)) {
            for (x, length) in runs(bits) {
                let (left, top) = (square.left + x * side, square.top + y * side);
                brush.fill(Area::at(left, top, length * side, side))?;
            }
        }
    }
    Ok(())
}

/// The runs of ones in a row: their place from the left, and their length.
fn runs(bits: u8) -> impl Iterator<Item = (i64, i64)> {
    let mut rest = u32::from(bits);
    let mut passed = 0;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let start = rest.trailing_zeros();
        let length = (rest >> start).trailing_ones();
        let found = (i64::from(passed + start), i64::from(length));
        rest >>= start + length;
        passed += start + length;
        Some(found)
    })
}
