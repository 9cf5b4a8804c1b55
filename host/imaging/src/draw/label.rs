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

/// Nanoseconds to look at a character, also at one that is not within the image.
const CHAR_NS: u64 = 5;

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
    let (x, y) = (i64::from(label.x), i64::from(label.y));
    let (first, count) = visible(label, side, size);
    let characters = label.text.chars().skip(first).take(count);
    (first as i64..)
        .zip(characters)
        .map(move |(index, character)| (character, Area::at(x + index * side, y, side, side)))
}

/// The place of the first character that is within the image, at least in part, and the number of
/// such places. The text may be shorter.
fn visible(label: &Label, side: i64, size: Size) -> (usize, usize) {
    let (x, y) = (i64::from(label.x), i64::from(label.y));
    let (width, height) = (i64::from(size.width), i64::from(size.height));
    if side == 0 || y + side <= 0 || y >= height || x >= width {
        return (0, 0);
    }
    // The first one that ends to the right of the left edge, and the first one that begins at the
    // right edge or beyond.
    let first = (-x).max(0) / side;
    let end = (width - x + side - 1) / side;
    (first as usize, (end - first) as usize)
}

/// Nanoseconds to draw it.
pub(super) fn label_ns(label: &Label, size: Size) -> u64 {
    let square_ns = |(_, square): (char, Area)| {
        // Each row of the image is filled run by run.
        let row = Area { right: square.left + 1, ..square };
        square.within(size).cost_ns() + RUNS * row.cost_ns()
    };
    let looking = label.text.chars().count() as u64 * CHAR_NS;
    looking + squares(label, size).map(square_ns).sum::<u64>()
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
