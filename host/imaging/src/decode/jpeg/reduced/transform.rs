//! From the lowest coefficients of a block to its pixels at a smaller size.

/// The coefficients of a block in the order of a file: eight times the row, plus the column.
#[rustfmt::skip]
const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// The place of a coefficient that is not kept, behind all others.
pub(super) const NOWHERE: usize = 64;

/// The coefficients of a block, and one place for all that are not kept.
pub(super) type Values = [i16; NOWHERE + 1];

/// Makes blocks of `across` and `down` pixels, of as many columns and rows of coefficients. Each is
/// 1, 2, 4 or 8.
pub(super) struct Transform {
    pub(super) across: usize,
    pub(super) down: usize,
    /// The place of each coefficient in its block. A run of zeros can lead past the last one.
    places: [u8; 64 + 16],
    /// The last coefficient that is kept.
    pub(super) last: usize,
    /// What a coefficient of one stands for in a column and in a row of pixels.
    columns: [[f32; 8]; 8],
    rows: [[f32; 8]; 8],
}

impl Transform {
    pub(super) fn new(across: usize, down: usize) -> Self {
        let mut places = [NOWHERE as u8; 64 + 16];
        let mut last = 0;
        for (at, natural) in ZIGZAG.into_iter().enumerate() {
            let (column, row) = (usize::from(natural % 8), usize::from(natural / 8));
            if column < across && row < down {
                places[at] = (row * across + column) as u8;
                last = at;
            }
        }
        Self { across, down, places, last, columns: waves(across), rows: waves(down) }
    }

    /// The coefficients that are kept of a block.
    #[inline]
    pub(super) fn kept(&self) -> usize {
        self.across * self.down
    }

    /// The place of a coefficient in [`Values`].
    #[inline]
    pub(super) fn place(&self, coefficient: usize) -> usize {
        self.places.get(coefficient).map_or(NOWHERE, |place| usize::from(*place))
    }

    /// The quantisers, which come in the order of a file, in the order of [`Values`].
    pub(super) fn factors(&self, quantisers: &[u16; 64]) -> [f32; 64] {
        let mut factors = [0.0; 64];
        for (at, quantiser) in quantisers.iter().enumerate() {
            if let Some(factor) = factors.get_mut(self.place(at)) {
                *factor = f32::from(*quantiser);
            }
        }
        factors
    }

    /// Make a block's pixels. `target` begins with the first one, and its rows have `stride`.
    #[inline]
    pub(super) fn make(
        &self,
        values: &[i16],
        factors: &[f32; 64],
        target: &mut [u8],
        stride: usize,
    ) {
        let is_flat = || values[1..self.kept()].iter().all(|value| *value == 0);
        if self.kept() == 1 || self.kept() > 4 && is_flat() {
            let value = pixel(f32::from(values[0]) * factors[0] / 8.0);
            for row in target.chunks_mut(stride).take(self.down) {
                row[..self.across].fill(value);
            }
            return;
        }
        match self.across {
            1 => self.make_of::<1>(values, factors, target, stride),
            2 => self.make_of::<2>(values, factors, target, stride),
            4 => self.make_of::<4>(values, factors, target, stride),
            _ => self.make_of::<8>(values, factors, target, stride),
        }
    }

    #[inline]
    fn make_of<const ACROSS: usize>(
        &self,
        values: &[i16],
        factors: &[f32; 64],
        target: &mut [u8],
        stride: usize,
    ) {
        match self.down {
            1 => self.make_exactly::<ACROSS, 1>(values, factors, target, stride),
            2 => self.make_exactly::<ACROSS, 2>(values, factors, target, stride),
            4 => self.make_exactly::<ACROSS, 4>(values, factors, target, stride),
            _ => self.make_exactly::<ACROSS, 8>(values, factors, target, stride),
        }
    }

    /// The same for a block whose sides are known to the compiler.
    fn make_exactly<const ACROSS: usize, const DOWN: usize>(
        &self,
        values: &[i16],
        factors: &[f32; 64],
        target: &mut [u8],
        stride: usize,
    ) {
        let mut lines = [[0.0_f32; ACROSS]; DOWN];
        let (values, _) = values.as_chunks::<ACROSS>();
        let (factors, _) = factors.as_chunks::<ACROSS>();
        let Some(values) = values.first_chunk::<DOWN>() else { return };
        // Most blocks have coefficients in their first rows only.
        let mut used = 0;
        for (row, (values, factors)) in values.iter().zip(factors).enumerate() {
            if ACROSS * DOWN > 4 && *values == [0; ACROSS] {
                continue;
            }
            used = row + 1;
            for ((wave, value), factor) in self.columns.iter().zip(values).zip(factors) {
                let value = f32::from(*value) * factor;
                lines[row].iter_mut().zip(wave).for_each(|(sum, part)| *sum += value * part);
            }
        }
        for y in 0..DOWN {
            let mut sums = [0.0_f32; ACROSS];
            for (wave, line) in self.rows.iter().zip(&lines).take(used) {
                sums.iter_mut().zip(line).for_each(|(sum, value)| *sum += wave[y] * value);
            }
            if let Some(row) = target[y * stride..].first_chunk_mut::<ACROSS>() {
                *row = sums.map(pixel);
            }
        }
    }
}

/// A value around 0 as that of a pixel.
#[inline]
fn pixel(value: f32) -> u8 {
    // Saturates.
    (value + 128.5) as u8
}

/// For each coefficient the values that it adds to a line of `len` pixels.
fn waves(len: usize) -> [[f32; 8]; 8] {
    let mut waves = [[0.0; 8]; 8];
    for (frequency, wave) in waves.iter_mut().enumerate().take(len) {
        for (at, value) in wave.iter_mut().enumerate().take(len) {
            let angle = ((2 * at + 1) * frequency) as f32 * std::f32::consts::PI / (2 * len) as f32;
            let weight = if frequency == 0 { std::f32::consts::FRAC_1_SQRT_2 } else { 1.0 };
            *value = weight * angle.cos() / 2.0;
        }
    }
    waves
}
