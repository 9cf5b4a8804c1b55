//! Made-up rows: random values of each input's type.
//!
//! The values that a model takes are not known: a number may be a token, a pixel or a price. So
//! several ranges are tried. A range that the model refuses is left out.

use std::borrow::Cow;

use gristmill_core::{BufferPool, Dtype, ModelInfo, Tensor, TensorError, TensorInfo};

use crate::probe::{shape_of, take_size};

/// A row: a tensor of one row for each of the model's inputs.
pub(super) type Row = Vec<Tensor>;

/// The range of the values of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Range {
    /// Fractions around 0, whole numbers 0 and 1.
    Unit,
    /// Fractions from 0 to 1, whole numbers to 8.
    Small,
    /// Fractions to 255, whole numbers to 255.
    Pixels,
    /// Mostly 0, else large; whole numbers to 20,000.
    Sparse,
    /// Only 0.
    Zero,
    /// Fractions of 10,000, whole numbers to 8.
    Large,
    /// Fractions of 1e30, whole numbers to 8.
    Huge,
    /// Fractions around 0, whole numbers to 8.
    Signed,
    /// Only below 0: fractions to -256, whole numbers from -1,000,000 on; in a type of one or two
    /// bytes to -127.
    Negative,
    /// Infinite fractions.
    Infinite,
    /// Fractions that are not a number.
    NotANumber,
}

/// The ranges of rows whose outputs are compared.
pub(super) const USUAL: [Range; 4] = [Range::Unit, Range::Small, Range::Pixels, Range::Sparse];

/// The ranges of rows beside them.
pub(super) const EXTREME: [Range; 5] =
    [Range::Large, Range::Zero, Range::Huge, Range::NotANumber, Range::Infinite];

/// Maximum bytes of one row.
const ROW_BYTES_MAX: usize = 16 << 20;

/// Maximum texts of one row.
const TEXTS_MAX: usize = 4096;

const WORDS: [&str; 8] = ["a", "the", "1", "-3.5", "Berlin", "", "été", "x y z"];

/// Makes up rows. The same seed makes the same rows.
pub(super) struct Values<'a> {
    pub(super) info: &'a ModelInfo,
    pub(super) pool: &'a BufferPool,
    seed: u64,
}

impl<'a> Values<'a> {
    pub(super) fn new(info: &'a ModelInfo, pool: &'a BufferPool) -> Self {
        Self { info, pool, seed: 0x6772_6973_746d_696c }
    }

    /// A row in `range`; `size` replaces the open dimensions. None if it would be too large.
    pub(super) fn row(&mut self, range: Range, size: usize) -> Option<Row> {
        self.row_of(size, |_, _| range)
    }

    /// The same with a range for each input: `range_of` gets the input's index, and may change its
    /// shape.
    pub(super) fn row_of(
        &mut self,
        size: usize,
        range_of: impl Fn(usize, &mut [usize]) -> Range,
    ) -> Option<Row> {
        let (mut left, info) = (ROW_BYTES_MAX, self.info);
        let tensor = |(index, input): (usize, &TensorInfo)| {
            let mut shape = shape_of(input, 1, size);
            let range = range_of(index, &mut shape);
            self.tensor(input, range, &shape, &mut left)
        };
        info.inputs.iter().enumerate().map(tensor).collect()
    }

    /// A number from `from` to `to`.
    pub(super) fn length(&mut self, from: usize, to: usize) -> usize {
        from + self.below((to - from + 1) as u64) as usize
    }

    fn tensor(
        &mut self,
        input: &TensorInfo,
        range: Range,
        shape: &[usize],
        left: &mut usize,
    ) -> Option<Tensor> {
        let (elements, _) = take_size(input, shape, left)?;
        self.filled(input.dtype, shape, elements, range).ok()?
    }

    fn filled(
        &mut self,
        dtype: Dtype,
        shape: &[usize],
        elements: usize,
        range: Range,
    ) -> Result<Option<Tensor>, TensorError> {
        if dtype == Dtype::String {
            if elements > TEXTS_MAX {
                return Ok(None);
            }
            let texts: Vec<_> = (0..elements).map(|_| self.text(range)).collect();
            return Tensor::from_strings(self.pool, shape.into(), &texts).map(Some);
        }
        let mut bytes = Vec::with_capacity(elements * dtype.size_bytes().unwrap_or(8));
        for _ in 0..elements {
            match dtype {
                Dtype::Float16 => {
                    bytes.extend(half::f16::from_f64(self.fraction(range)).to_le_bytes());
                }
                Dtype::Bfloat16 => {
                    bytes.extend(half::bf16::from_f64(self.fraction(range)).to_le_bytes());
                }
                Dtype::Float32 => bytes.extend((self.fraction(range) as f32).to_le_bytes()),
                Dtype::Float64 => bytes.extend(self.fraction(range).to_le_bytes()),
                Dtype::Bool => bytes.push(self.below(2) as u8),
                whole => {
                    let size = whole.size_bytes().unwrap_or(8);
                    let value = self.whole(range, size).to_le_bytes();
                    // Its low bytes: in a type of one byte it may be another number.
                    bytes.extend(&value[..size]);
                }
            }
        }
        Tensor::new(dtype, shape.into(), self.pool.copy_from(&bytes)).map(Some)
    }

    /// A number, because a model may read it as one; words in one range.
    fn text(&mut self, range: Range) -> Cow<'static, str> {
        match range {
            Range::Small => WORDS[self.below(8) as usize].into(),
            Range::Sparse => self.fraction(range).to_string().into(),
            _ => self.whole(range, 8).to_string().into(),
        }
    }

    fn fraction(&mut self, range: Range) -> f64 {
        match range {
            Range::Unit | Range::Signed => self.normal(),
            Range::Negative => -1.0 - 255.0 * self.uniform(),
            Range::Small => self.uniform(),
            Range::Pixels => 255.0 * self.uniform(),
            Range::Sparse => match self.below(8) {
                0 => 100.0 * self.normal(),
                _ => 0.0,
            },
            Range::Zero => 0.0,
            Range::Large => 1e4 * self.normal(),
            Range::Huge => 1e30 * self.normal(),
            Range::Infinite => f64::INFINITY,
            Range::NotANumber => f64::NAN,
        }
    }

    /// A whole number for a type of `size` bytes.
    fn whole(&mut self, range: Range, size: usize) -> i64 {
        let below = match range {
            Range::Unit => 2,
            Range::Pixels => 256,
            Range::Sparse => 20_000,
            Range::Zero => return 0,
            Range::Negative if size <= 2 => 64,
            // A negative index counts from the end of a table: these are beyond any table.
            Range::Negative => 1_000_000,
            _ => 8,
        };
        let value = self.below(below) as i64;
        if range == Range::Negative { -(below as i64) - value } else { value }
    }

    /// Around 0, with a variance of 1.
    fn normal(&mut self) -> f64 {
        let sum: f64 = (0..12).map(|_| self.uniform()).sum();
        sum - 6.0
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
