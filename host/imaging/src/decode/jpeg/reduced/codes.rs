//! The codes of a scan, and tables that read them.

use super::bits::{Bits, value_of};
use super::fault::damaged;
use crate::error::ImageError;

/// Codes of up to this length are found at once.
const FAST_BITS: u32 = 9;

/// The length of the longest code.
const LEN_MAX: usize = 16;

/// Codes, from their lengths and symbols.
pub(super) struct Codes {
    /// For the next [`FAST_BITS`] bits: the length of their code, and its symbol in the lower byte.
    /// 0 if the code is longer.
    fast: Vec<u16>,
    /// For each length: what is less than this, in 16 bits, begins with a code of at most this
    /// length.
    limits: [u32; LEN_MAX + 1],
    /// For each length: what is added to a code to get the index of its symbol.
    offsets: [i32; LEN_MAX + 1],
    symbols: Vec<u8>,
}

impl Codes {
    /// The codes of a table: how many there are of each length, and all symbols. None if so many
    /// codes do not exist.
    pub(super) fn new(counts: &[u8; LEN_MAX], symbols: &[u8]) -> Option<Self> {
        let mut codes = Self {
            fast: vec![0; 1 << FAST_BITS],
            limits: [0; LEN_MAX + 1],
            offsets: [0; LEN_MAX + 1],
            symbols: symbols.to_vec(),
        };
        let (mut code, mut index) = (0_u32, 0_usize);
        for (len, count) in (1..=LEN_MAX).zip(counts) {
            codes.offsets[len] = index as i32 - code as i32;
            for symbol in symbols.get(index..index + usize::from(*count))? {
                if code >= 1 << len {
                    return None;
                }
                if let Some(rest) = FAST_BITS.checked_sub(len as u32) {
                    let entry = (len as u16) << 8 | u16::from(*symbol);
                    codes.fast[(code as usize) << rest..][..1 << rest].fill(entry);
                }
                code += 1;
            }
            index += usize::from(*count);
            codes.limits[len] = code << (LEN_MAX - len);
            code <<= 1;
        }
        Some(codes)
    }

    /// The next symbol.
    #[inline]
    pub(super) fn next(&self, bits: &mut Bits<'_>) -> Result<u32, ImageError> {
        bits.fill();
        let entry = self.fast[bits.peek(FAST_BITS)];
        if entry > 0 {
            bits.skip(u32::from(entry >> 8));
            return Ok(u32::from(entry & 0xff));
        }
        let (len, symbol) = self.first(bits.peek(LEN_MAX as u32) as u32).ok_or_else(damaged)?;
        bits.skip(len);
        Ok(symbol)
    }

    /// The code with which these 16 bits begin: its length and its symbol.
    fn first(&self, window: u32) -> Option<(u32, u32)> {
        let len = (1..=LEN_MAX).find(|len| window < self.limits[*len])?;
        let index = (window >> (LEN_MAX - len)) as i32 + self.offsets[len];
        let symbol = self.symbols.get(usize::try_from(index).ok()?)?;
        Some((len as u32, u32::from(*symbol)))
    }
}

/// The bits that are looked at to go past coefficients.
const SKIPPED_BITS: u32 = 12;

/// Coefficients that are passed at once: how many bits they have (4 bits), to which one they lead
/// (7 bits), and whether the block has ended.
#[derive(Clone, Copy, Default)]
pub(super) struct Skip(u16);

impl Skip {
    /// The bits to be skipped. 0 if the next code is longer than what was looked at.
    #[inline]
    pub(super) fn bits(self) -> u32 {
        u32::from(self.0 & 15)
    }

    /// The coefficients that are passed.
    #[inline]
    pub(super) fn coefficients(self) -> usize {
        usize::from(self.0 >> 4 & 127)
    }

    /// Whether no more come.
    #[inline]
    pub(super) fn is_end(self) -> bool {
        self.0 >> 15 == 1
    }
}

/// The bits in which a code is looked for together with its value.
const JOINT_BITS: u32 = 10;

/// A coefficient with its code.
#[derive(Clone, Copy, Default)]
pub(super) struct Coefficient {
    pub(super) value: i16,
    /// The zeros before it. 64 if the block has ended.
    pub(super) zeros: u8,
    /// The bits of the code and of the value. 0 if they are longer than what was looked at.
    pub(super) bits: u8,
}

/// What the codes of a baseline image stand for.
pub(super) struct Baseline {
    /// For the next bits of a block, the first coefficient in them.
    coefficients: Vec<Coefficient>,
    /// For the next bits of a block, all whole coefficients in them.
    skips: Vec<Skip>,
}

impl Baseline {
    pub(super) fn new(codes: &Codes) -> Self {
        Self {
            coefficients: (0..1 << JOINT_BITS).map(|window| coefficient(codes, window)).collect(),
            skips: (0..1 << SKIPPED_BITS).map(|window| skip(codes, window)).collect(),
        }
    }

    /// The coefficient of the next bits.
    #[inline]
    pub(super) fn coefficient(&self, bits: &mut Bits<'_>) -> Coefficient {
        bits.fill();
        self.coefficients[bits.peek(JOINT_BITS)]
    }

    /// What the next bits skip.
    #[inline]
    pub(super) fn skip(&self, bits: &mut Bits<'_>) -> Skip {
        bits.fill();
        self.skips[bits.peek(SKIPPED_BITS)]
    }
}

fn coefficient(codes: &Codes, window: u32) -> Coefficient {
    let found = codes.first(window << (LEN_MAX as u32 - JOINT_BITS));
    let Some((code_len, symbol)) = found else { return Coefficient::default() };
    let (zeros, len) = (symbol >> 4, symbol & 15);
    let Some(rest) = JOINT_BITS.checked_sub(code_len + len) else { return Coefficient::default() };
    let value = value_of((window >> rest) as i32 & ((1 << len) - 1), len) as i16;
    let is_end = len == 0 && zeros < 15;
    let zeros = if is_end { 64 } else { zeros as u8 };
    Coefficient { value, zeros, bits: (code_len + len) as u8 }
}

fn skip(codes: &Codes, window: u32) -> Skip {
    let (mut used, mut passed, mut is_end) = (0, 0, false);
    while !is_end && passed < 64 {
        // Zeros come behind the window. A code that uses one is too long.
        let rest = window << used & ((1 << SKIPPED_BITS) - 1);
        let Some((len, symbol)) = codes.first(rest << (LEN_MAX as u32 - SKIPPED_BITS)) else {
            break;
        };
        let (zeros, value_len) = (symbol >> 4, symbol & 15);
        if used + len + value_len > SKIPPED_BITS {
            break;
        }
        used += len + value_len;
        is_end = value_len == 0 && zeros < 15;
        passed += if is_end { 0 } else { zeros + 1 };
    }
    Skip((used | passed << 4 | u32::from(is_end) << 15) as u16)
}
