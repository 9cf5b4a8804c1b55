//! The blocks of a scan: all coefficients of a baseline image, or some bits of a progressive one.
//!
//! Only the coefficients that make the smaller image are kept. The others are skipped, several at
//! a time where an image is baseline.

use super::bits::Bits;
use super::codes::{Baseline, Codes};
use super::fault::damaged;
use super::transform::{Transform, Values};
use crate::error::ImageError;

/// The longest value of a coefficient, in bits.
const VALUE_BITS_MAX: u32 = 15;

/// How the blocks of a component are read in a scan, which may need only some codes.
#[derive(Clone, Copy)]
pub(super) struct ComponentScan<'a> {
    pub(super) transform: &'a Transform,
    /// The codes of differences to the block before.
    pub(super) differences: Option<&'a Codes>,
    /// The codes of other coefficients, and what they stand for in a baseline image.
    pub(super) coefficients: Option<&'a Codes>,
    pub(super) baseline: Option<&'a Baseline>,
}

/// What the blocks of a component leave to the next one.
#[derive(Clone, Copy, Default)]
pub(super) struct Carry {
    /// The first coefficient of the block before.
    last: i32,
    /// The number of blocks that bring nothing new.
    blank: u32,
}

/// The coefficients of a block, and which of all 64 are not zero.
pub(super) struct Stored<'a> {
    pub(super) values: &'a mut [i16],
    pub(super) nonzero: &'a mut u64,
}

/// The part of the coefficients that a scan of a progressive image brings.
#[derive(Clone, Copy)]
pub(super) struct SpectralBand {
    /// The first and the last coefficient.
    pub(super) first: usize,
    pub(super) last: usize,
    /// The lowest bit that it brings.
    pub(super) bit: u32,
    /// Whether the higher bits came before.
    pub(super) is_refinement: bool,
}

impl ComponentScan<'_> {
    #[inline]
    fn difference(&self, bits: &mut Bits<'_>) -> Result<i32, ImageError> {
        let len = self.differences.ok_or_else(damaged)?.next(bits)?;
        if len > VALUE_BITS_MAX {
            return Err(damaged());
        }
        Ok(bits.take_value(len))
    }

    /// The next block of a baseline image. The kept places of `values` are 0 before.
    pub(super) fn baseline(
        &self,
        bits: &mut Bits<'_>,
        carry: &mut Carry,
        values: &mut Values,
    ) -> Result<(), ImageError> {
        let mut copy = *bits;
        self.read_baseline(&mut copy, carry, values)?;
        *bits = copy;
        Ok(())
    }

    #[inline]
    fn read_baseline(
        &self,
        bits: &mut Bits<'_>,
        carry: &mut Carry,
        values: &mut Values,
    ) -> Result<(), ImageError> {
        carry.last = carry.last.wrapping_add(self.difference(bits)?);
        values[0] = carry.last as i16;
        let (Some(codes), Some(tables)) = (self.coefficients, self.baseline) else {
            return Err(damaged());
        };
        let mut next = 1;
        while next <= self.transform.last {
            let found = tables.coefficient(bits);
            if found.bits > 0 {
                bits.skip(found.bits.into());
                next += usize::from(found.zeros);
                if next > 63 {
                    return Ok(());
                }
                values[self.transform.place(next)] = found.value;
                next += 1;
                continue;
            }
            let symbol = codes.next(bits)?;
            let (zeros, len) = (symbol as usize >> 4, symbol & 15);
            if len == 0 && zeros < 15 {
                return Ok(());
            }
            next += zeros;
            values[self.transform.place(next)] = bits.take_value(len) as i16;
            next += 1;
        }
        while next < 64 {
            let skip = tables.skip(bits);
            // A skip past the last coefficient would go on in the next block.
            if skip.bits() > 0 && next + skip.coefficients() < 64 {
                bits.skip(skip.bits());
                if skip.is_end() {
                    return Ok(());
                }
                next += skip.coefficients();
                continue;
            }
            let symbol = codes.next(bits)?;
            let (zeros, len) = (symbol as usize >> 4, symbol & 15);
            if len == 0 && zeros < 15 {
                return Ok(());
            }
            bits.skip(len);
            next += zeros + 1;
        }
        Ok(())
    }

    /// A part of the next block of a progressive image.
    pub(super) fn progressive(
        &self,
        bits: &mut Bits<'_>,
        part: SpectralBand,
        carry: &mut Carry,
        block: Stored<'_>,
    ) -> Result<(), ImageError> {
        match (part.first, part.is_refinement) {
            (0, false) => {
                carry.last = carry.last.wrapping_add(self.difference(bits)?);
                block.values[0] = carry.last.wrapping_shl(part.bit) as i16;
                Ok(())
            }
            (0, true) => {
                block.values[0] |= i16::from(bits.take_bit()) << part.bit;
                Ok(())
            }
            (_, false) => self.begin(bits, part, &mut carry.blank, block),
            (_, true) => self.refine(bits, part, &mut carry.blank, block),
        }
    }

    /// The first bits of coefficients.
    fn begin(
        &self,
        bits: &mut Bits<'_>,
        part: SpectralBand,
        blank: &mut u32,
        block: Stored<'_>,
    ) -> Result<(), ImageError> {
        if *blank > 0 {
            *blank -= 1;
            return Ok(());
        }
        let codes = self.coefficients.ok_or_else(damaged)?;
        let mut next = part.first;
        while next <= part.last {
            let symbol = codes.next(bits)?;
            let (zeros, len) = (symbol >> 4, symbol & 15);
            if len == 0 && zeros < 15 {
                *blank = (1 << zeros) - 1 + bits.take(zeros).cast_unsigned();
                return Ok(());
            }
            next += zeros as usize;
            let value = bits.take_value(len);
            if value != 0 && next < 64 {
                *block.nonzero |= 1 << next;
                if let Some(slot) = block.values.get_mut(self.transform.place(next)) {
                    *slot = (value << part.bit) as i16;
                }
            }
            next += 1;
        }
        Ok(())
    }

    /// One more bit of coefficients.
    fn refine(
        &self,
        bits: &mut Bits<'_>,
        part: SpectralBand,
        blank: &mut u32,
        mut block: Stored<'_>,
    ) -> Result<(), ImageError> {
        let codes = self.coefficients.ok_or_else(damaged)?;
        let step = 1_i16 << part.bit;
        let mut next = part.first;
        while *blank == 0 && next <= part.last {
            let symbol = codes.next(bits)?;
            let (zeros, len) = (symbol >> 4, symbol & 15);
            let mut value = 0;
            if len > 0 {
                value = if bits.take_bit() { step } else { -step };
            } else if zeros < 15 {
                *blank = (1 << zeros) + bits.take(zeros).cast_unsigned();
                break;
            }
            // So many coefficients that are still zero come before the new one.
            let mut places = !*block.nonzero & between(next, part.last);
            for _ in 0..zeros {
                places &= places.wrapping_sub(1);
            }
            let end = (places.trailing_zeros() as usize).min(part.last + 1);
            self.correct(bits, step, between(next, end - 1), &mut block);
            next = end;
            if value != 0 && next <= part.last {
                *block.nonzero |= 1 << next;
                if let Some(slot) = block.values.get_mut(self.transform.place(next)) {
                    *slot = value;
                }
            }
            next += 1;
        }
        if *blank > 0 {
            self.correct(bits, step, between(next, part.last), &mut block);
            *blank -= 1;
        }
        Ok(())
    }

    /// The next bit of each of these coefficients that is not zero. Takes time for these alone,
    /// because a scan of nearly no bytes can come to all blocks.
    fn correct(&self, bits: &mut Bits<'_>, step: i16, among: u64, block: &mut Stored<'_>) {
        let mut left = *block.nonzero & among;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            left &= left - 1;
            if bits.take_bit()
                && let Some(value) = block.values.get_mut(self.transform.place(at))
                && *value & step == 0
            {
                *value = value.wrapping_add(if *value < 0 { -step } else { step });
            }
        }
    }
}

/// A bit for each coefficient from the first to the last, which is at most 63.
fn between(first: usize, last: usize) -> u64 {
    if first > last { 0 } else { u64::MAX << first & u64::MAX >> (63 - last) }
}
