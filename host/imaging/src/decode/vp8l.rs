//! Measures the codes of a lossless WebP, before a decoder makes tables of them.
//!
//! An image has groups of five prefix codes. Its entropy image names up to 65,536 groups, so a
//! file of a few hundred KB can need gigabytes of tables. `image-webp` does not report the number
//! of groups. So this reads all that comes before the pixels: the transforms, the entropy image and
//! each group's code lengths. Of the entropy image only the largest group number matters. No pixels
//! are kept: copies and the colour cache only repeat colours that came as literals before, so they
//! cannot name a further group.
//!
//! It may accept a file that the decoder refuses, but never refuses a file that the decoder
//! accepts.

use super::options::malformed;
use super::walk::Walk;
use crate::error::ImageError;
use crate::work::Size;

/// Symbols of a group's codes: green and lengths (and the colour cache), red, blue, alpha,
/// distances.
const ALPHABETS: [usize; 5] = [LITERALS + LENGTHS, 256, 256, 256, 40];
const LITERALS: usize = 256;
const LENGTHS: usize = 24;

/// The order in which the lengths of the code for code lengths come.
const LENGTHS_ORDER: [usize; 19] =
    [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// The length of the longest code.
const CODE_BITS_MAX: usize = 15;

/// The cost of a pixel, in steps of a walk.
const PIXEL_STEPS: usize = 16;

/// The memory in which the decoder holds a code: a table for the first ten bits with entries of
/// four bytes, and two nodes of sixteen bytes for each symbol with more bits. The allocator's
/// overhead is added.
const TABLE_BITS: usize = 10;
const ENTRY_BYTES: u64 = 4;
const NODES_BYTES: u64 = 2 * 16;
const ALLOCATION_BYTES: u64 = 64;

/// The memory of a group without its tables, in a list that doubles when it is full.
const GROUP_BYTES: u64 = 3 * 280;

/// The header of a stream: all that comes before its pixels.
pub(super) struct Stream<'a> {
    pub(super) data: &'a [u8],
    pub(super) size: Size,
    /// Whether it begins with its own header. The stream of an alpha channel does not.
    pub(super) has_header: bool,
}

impl Stream<'_> {
    /// An upper bound on the bytes that the decoder holds for its codes.
    pub(super) fn code_bytes(&self, walk: &mut Walk<'_>) -> Result<u64, ImageError> {
        let mut reader = Reader { data: self.data, bit: 0, walk };
        if self.has_header {
            // Signature, sides, presence of alpha, and version are known already, or the decoder
            // checks them.
            reader.bits(8)?;
            reader.bits(32)?;
        }
        reader.all_codes(self.size)
    }
}

/// A prefix code, and the bytes that the decoder holds for it.
struct Code {
    /// The number of symbols with codes of each length.
    counts: [u16; CODE_BITS_MAX + 1],
    /// The symbols, by length, then by value.
    symbols: Vec<u16>,
    bytes: u64,
}

impl Code {
    fn single(symbol: u16) -> Self {
        Self { counts: [0; CODE_BITS_MAX + 1], symbols: vec![symbol], bytes: 0 }
    }

    /// The code with these lengths; none if they are not those of a code.
    fn of(lengths: &[u8]) -> Option<Self> {
        let mut counts = [0; CODE_BITS_MAX + 1];
        lengths.iter().for_each(|length| counts[usize::from(*length)] += 1);
        counts[0] = 0;
        let longest = counts.iter().rposition(|count| *count > 0)?;
        let mut starts = [0; CODE_BITS_MAX + 2];
        let mut free = 1_i32;
        for length in 1..=CODE_BITS_MAX {
            starts[length + 1] = starts[length] + usize::from(counts[length]);
            if length <= longest {
                free = 2 * free - i32::from(counts[length]);
            }
        }
        let mut symbols = vec![0; starts[CODE_BITS_MAX + 1]];
        for (symbol, length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            let at = &mut starts[usize::from(*length)];
            symbols[*at] = symbol as u16;
            *at += 1;
        }
        if let [symbol] = symbols[..] {
            return Some(Self::single(symbol));
        }
        let far: u64 = counts[TABLE_BITS + 1..].iter().map(|count| u64::from(*count)).sum();
        let table = ENTRY_BYTES << longest.min(TABLE_BITS);
        let bytes = 2 * ALLOCATION_BYTES + (table + far * NODES_BYTES) * 9 / 8;
        (free == 0).then_some(Self { counts, symbols, bytes })
    }
}

/// Reads a stream's bits, from the lowest bit of each byte.
struct Reader<'a, 'w> {
    data: &'a [u8],
    /// The next bit.
    bit: usize,
    walk: &'a mut Walk<'w>,
}

impl Reader<'_, '_> {
    /// The next `count` bits, at most 32.
    fn bits(&mut self, count: u32) -> Result<u32, ImageError> {
        let (byte, shift) = (self.bit / 8, self.bit % 8);
        self.bit += count as usize;
        if self.bit > self.data.len() * 8 {
            return Err(malformed("the data end before its codes do"));
        }
        let mut eight = [0; 8];
        let rest = &self.data[byte..];
        let len = rest.len().min(8);
        eight[..len].copy_from_slice(&rest[..len]);
        Ok((u64::from_le_bytes(eight) >> shift & ((1 << count) - 1)) as u32)
    }

    fn flag(&mut self) -> Result<bool, ImageError> {
        Ok(self.bits(1)? == 1)
    }

    fn symbol(&mut self, code: &Code) -> Result<usize, ImageError> {
        if let [symbol] = code.symbols[..] {
            return Ok(symbol.into());
        }
        let (mut value, mut first, mut index) = (0, 0, 0);
        for count in &code.counts[1..] {
            let count = usize::from(*count);
            value = value << 1 | self.bits(1)? as usize;
            if value < first + count {
                return Ok(code.symbols[index + value - first].into());
            }
            index += count;
            first = (first + count) << 1;
        }
        Err(malformed("a code that does not exist"))
    }

    /// Read all that comes before the pixels of an image.
    fn all_codes(&mut self, size: Size) -> Result<u64, ImageError> {
        let mut width = size.width;
        let mut seen = [false; 4];
        while self.flag()? {
            let kind = self.bits(2)? as usize;
            if std::mem::replace(&mut seen[kind], true) {
                return Err(malformed("a transform comes twice"));
            }
            match kind {
                // Predictors and colours, one for each block.
                0 | 1 => {
                    self.blocks(Size { width, ..size })?;
                }
                2 => {}
                // A palette. With a small one, a pixel of the stream holds several pixels of the
                // image.
                _ => {
                    let colors = self.bits(8)? + 1;
                    self.image(Size { width: colors, height: 1 })?;
                    let shared = match colors {
                        ..=2 => 3,
                        3..=4 => 2,
                        5..=16 => 1,
                        _ => 0,
                    };
                    width = width.div_ceil(1 << shared);
                }
            }
        }
        let cached = self.color_cache()?;
        let has_groups = self.flag()?;
        let last = if has_groups { self.blocks(Size { width, ..size })? } else { 0 };
        let mut bytes = 0;
        for _ in 0..=last {
            let codes = self.group(cached)?;
            bytes += GROUP_BYTES + codes.iter().map(|code| code.bytes).sum::<u64>();
        }
        Ok(bytes)
    }

    /// Read an image with one pixel for each block of an image of `size`. Returns the largest
    /// group number in it.
    fn blocks(&mut self, size: Size) -> Result<u32, ImageError> {
        let side = 4 << self.bits(3)?;
        self.image(Size { width: size.width.div_ceil(side), height: size.height.div_ceil(side) })
    }

    /// Read an image within the image. Returns the largest group number in it.
    fn image(&mut self, size: Size) -> Result<u32, ImageError> {
        let cached = self.color_cache()?;
        let [green, red, blue, alpha, distance] = self.group(cached)?;
        let (mut last, mut left) = (0, size.pixels());
        while left > 0 {
            self.walk.steps(PIXEL_STEPS)?;
            let symbol = self.symbol(&green)?;
            let mut pixels = 1;
            if symbol < LITERALS {
                let high = self.symbol(&red)?;
                self.symbol(&blue)?;
                self.symbol(&alpha)?;
                last = last.max((high << 8 | symbol) as u32);
            } else if symbol < LITERALS + LENGTHS {
                pixels = self.distance(symbol - LITERALS)?;
                let symbol = self.symbol(&distance)?;
                self.distance(symbol)?;
            }
            left =
                left.checked_sub(pixels).ok_or_else(|| malformed("more pixels than its size"))?;
        }
        Ok(last)
    }

    /// The length or distance that a prefix begins.
    fn distance(&mut self, prefix: usize) -> Result<u64, ImageError> {
        if prefix < 4 {
            return Ok(prefix as u64 + 1);
        }
        let extra = (prefix as u32 - 2) >> 1;
        let offset = (2 + (prefix as u64 & 1)) << extra;
        Ok(offset + u64::from(self.bits(extra)?) + 1)
    }

    /// The number of colours in the cache.
    fn color_cache(&mut self) -> Result<usize, ImageError> {
        if !self.flag()? {
            return Ok(0);
        }
        match self.bits(4)? {
            bits @ 1..=11 => Ok(1 << bits),
            _ => Err(malformed("the size of its colour cache")),
        }
    }

    /// The five codes of a group.
    fn group(&mut self, cached: usize) -> Result<[Code; 5], ImageError> {
        let [mut green, red, blue, alpha, distance] = ALPHABETS;
        green += cached;
        Ok([
            self.code(green)?,
            self.code(red)?,
            self.code(blue)?,
            self.code(alpha)?,
            self.code(distance)?,
        ])
    }

    fn code(&mut self, alphabet: usize) -> Result<Code, ImageError> {
        let no_code = || malformed("an impossible code");
        if self.flag()? {
            // One or two symbols.
            let is_two = self.flag()?;
            let bits = if self.flag()? { 8 } else { 1 };
            let one = self.bits(bits)? as u16;
            let other = if is_two { self.bits(8)? as u16 } else { one };
            self.walk.steps(8)?;
            if usize::from(one.max(other)) >= alphabet {
                return Err(no_code());
            }
            if !is_two {
                return Ok(Code::single(one));
            }
            let mut counts = [0; CODE_BITS_MAX + 1];
            counts[1] = 2;
            return Ok(Code { counts, symbols: vec![one, other], bytes: 4 * ALLOCATION_BYTES });
        }
        let mut lengths = [0; LENGTHS_ORDER.len()];
        let count = 4 + self.bits(4)? as usize;
        for at in LENGTHS_ORDER.get(..count).ok_or_else(no_code)? {
            lengths[*at] = self.bits(3)? as u8;
        }
        let lengths = Code::of(&lengths).ok_or_else(no_code)?;
        Code::of(&self.lengths(&lengths, alphabet)?).ok_or_else(no_code)
    }

    /// The lengths of a code's symbols.
    fn lengths(&mut self, code: &Code, alphabet: usize) -> Result<Vec<u8>, ImageError> {
        self.walk.steps(2 * alphabet)?;
        let mut coded = alphabet;
        if self.flag()? {
            let bits = 2 + 2 * self.bits(3)?;
            coded = 2 + self.bits(bits)? as usize;
        }
        let (mut lengths, mut previous) = (Vec::with_capacity(alphabet), 8);
        if let [length @ ..16] = code.symbols[..] {
            // No bit is read for them.
            lengths.resize(coded.min(alphabet), length as u8);
            return Ok(lengths);
        }
        while lengths.len() < alphabet && coded > 0 {
            coded -= 1;
            let (length, times) = match self.symbol(code)? {
                16 => (previous, 3 + self.bits(2)?),
                17 => (0, 3 + self.bits(3)?),
                18 => (0, 11 + self.bits(7)?),
                length => (length as u8, 1),
            };
            if length > 0 {
                previous = length;
            }
            lengths.extend(std::iter::repeat_n(length, times as usize));
        }
        if lengths.len() > alphabet {
            return Err(malformed("more codes than symbols"));
        }
        Ok(lengths)
    }
}
