//! A JPEG encoder for tests: baseline or progressive, with details in each block.
//!
//! Coefficients are made, not transformed from pixels. Codes are flat: four bits for a difference,
//! eight bits for other coefficients.

use gristmill_imaging::Size;

/// An image to be made.
#[derive(Clone)]
pub(crate) struct Photo {
    pub(crate) size: Size,
    pub(crate) is_progressive: bool,
    /// Whether all components but the first have half the resolution.
    pub(crate) is_subsampled: bool,
    /// Whether each component of a baseline image has a scan of its own.
    pub(crate) is_separate: bool,
    /// The components' names.
    pub(crate) names: &'static [u8],
    /// Coefficients of a block besides the first: at most 15.
    pub(crate) details: usize,
    /// Segments before the frame's header, and after it.
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
}

/// A segment.
pub(crate) fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
    let len = (data.len() as u16 + 2).to_be_bytes();
    [&[0xff, marker], &len[..], data].concat()
}

/// EXIF data with this orientation.
pub(crate) fn exif(orientation: u8) -> Vec<u8> {
    let mut data = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    data.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    segment(0xe1, &data)
}

/// Bits, stuffed as they are in a scan.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    pending: u64,
    count: u32,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        self.pending = self.pending << count | u64::from(value & ((1 << count) - 1));
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.pending >> self.count) as u8;
            self.bytes.push(byte);
            if byte == 0xff {
                self.bytes.push(0);
            }
        }
    }

    /// A difference or coefficient, behind its length.
    fn put_value(&mut self, value: i32) {
        let len = len_of(value);
        let value = if value < 0 { value + (1 << len) - 1 } else { value };
        self.put(value as u32, len);
    }

    fn put_difference(&mut self, value: i32) {
        self.put(len_of(value), 4);
        self.put_value(value);
    }

    fn put_coefficient(&mut self, zeros: usize, value: i32) {
        self.put_symbol((zeros as u32) << 4 | len_of(value));
        self.put_value(value);
    }

    fn put_symbol(&mut self, symbol: u32) {
        let index = (symbol >> 4) * SYMBOLS_OF_RUN + (symbol & 15);
        self.put((FIRST_CODE + index) % SYMBOLS, 8);
    }

    fn end(mut self) -> Vec<u8> {
        if self.count > 0 {
            let rest = 8 - self.count;
            self.put((1 << rest) - 1, rest);
        }
        self.bytes
    }
}

fn len_of(value: i32) -> u32 {
    32 - value.unsigned_abs().leading_zeros()
}

/// The symbols of a run of zeros: the end, and values of one to seven bits.
const SYMBOLS_OF_RUN: u32 = 8;
const SYMBOLS: u32 = 16 * SYMBOLS_OF_RUN;

/// The code of the first symbol, which ends a block. What fills up a file must not look like it.
const FIRST_CODE: u32 = 0b0101_0110;

/// The coefficients of one block, as they stand in its scan.
fn coefficients(component: usize, column: usize, row: usize, details: usize) -> [i32; 16] {
    let mut state = (component * 7919 + column * 31 + row * 1013) as u64 + 1;
    let mut next = |range: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i32 % range as i32
    };
    std::array::from_fn(|at| match at {
        0 => next(60) - 30,
        at if at <= details => {
            let value = next(9) - 4;
            if value == 0 { 1 } else { value }
        }
        _ => 0,
    })
}

/// A scan: its components, its band of coefficients, and the bits before and now.
struct Scan {
    components: Vec<usize>,
    band: (u8, u8),
    bits: (u8, u8),
}

impl Photo {
    pub(crate) fn new(width: u32, height: u32) -> Self {
        Self {
            size: Size { width, height },
            is_progressive: false,
            is_subsampled: true,
            is_separate: false,
            names: &[1, 2, 3],
            details: 5,
            before: vec![],
            after: vec![],
        }
    }

    /// The factor of a component's sides: its blocks in a unit, along one side.
    fn factor(&self, component: usize) -> usize {
        if self.is_subsampled && component == 0 { 2 } else { 1 }
    }

    fn factor_max(&self) -> usize {
        if self.is_subsampled { 2 } else { 1 }
    }

    fn scans(&self) -> Vec<Scan> {
        let all: Vec<_> = (0..self.names.len()).collect();
        let scan =
            |components: &[usize], band, bits| Scan { components: components.to_vec(), band, bits };
        let each =
            |band, bits| all.iter().map(move |one| Scan { components: vec![*one], band, bits });
        if !self.is_progressive {
            let band = (0, 63);
            return if self.is_separate {
                each(band, (0, 0)).collect()
            } else {
                vec![scan(&all, band, (0, 0))]
            };
        }
        let mut scans = vec![scan(&all, (0, 0), (0, 1))];
        scans.extend(each((1, 63), (0, 1)));
        scans.push(scan(&all, (0, 0), (1, 0)));
        scans.extend(each((1, 63), (1, 0)));
        scans
    }

    /// The parts of the file that end where something could be cut off: the header with its
    /// tables, each scan's header, each scan's data, the end.
    pub(crate) fn parts(&self) -> Vec<Vec<u8>> {
        let mut head = vec![0xff, 0xd8];
        head.extend(&self.before);
        let quantisers: Vec<u8> = std::iter::once(0).chain([6; 64]).collect();
        head.extend(segment(0xdb, &quantisers));
        let mut frame = vec![8];
        frame.extend((self.size.height as u16).to_be_bytes());
        frame.extend((self.size.width as u16).to_be_bytes());
        frame.push(self.names.len() as u8);
        for (component, name) in self.names.iter().enumerate() {
            let factor = self.factor(component) as u8;
            frame.extend([*name, factor << 4 | factor, 0]);
        }
        head.extend(segment(if self.is_progressive { 0xc2 } else { 0xc0 }, &frame));
        head.extend(&self.after);
        let mut differences = vec![0];
        differences.extend((1..=16).map(|len| if len == 4 { 12 } else { 0 }));
        differences.extend(0..12);
        head.extend(segment(0xc4, &differences));
        let mut symbols = vec![0x10];
        symbols.extend((1..=16).map(|len| if len == 8 { SYMBOLS as u8 } else { 0 }));
        let indices = (0..SYMBOLS).map(|code| (code + SYMBOLS - FIRST_CODE) % SYMBOLS);
        symbols
            .extend(indices.map(|at| (((at / SYMBOLS_OF_RUN) << 4) | (at % SYMBOLS_OF_RUN)) as u8));
        head.extend(segment(0xc4, &symbols));
        let mut parts = vec![head];
        for scan in self.scans() {
            let mut data = vec![scan.components.len() as u8];
            data.extend(scan.components.iter().flat_map(|component| [self.names[*component], 0]));
            data.extend([scan.band.0, scan.band.1, scan.bits.0 << 4 | scan.bits.1]);
            parts.push(segment(0xda, &data));
            parts.push(self.data(&scan));
        }
        parts.push(vec![0xff, 0xd9]);
        parts
    }

    pub(crate) fn whole(&self) -> Vec<u8> {
        self.parts().concat()
    }

    fn data(&self, scan: &Scan) -> Vec<u8> {
        let mut bits = Bits::default();
        let mut last = [0; 4];
        let max = self.factor_max();
        let blocks = |side: u32, factor: usize| (side as usize * factor).div_ceil(8 * max);
        if let [component] = scan.components[..] {
            let factor = self.factor(component);
            for row in 0..blocks(self.size.height, factor) {
                for column in 0..blocks(self.size.width, factor) {
                    self.block(scan, (component, column, row), &mut last, &mut bits);
                }
            }
            return bits.end();
        }
        for unit_row in 0..blocks(self.size.height, 1) {
            for unit_column in 0..blocks(self.size.width, 1) {
                for component in scan.components.iter().copied() {
                    let factor = self.factor(component);
                    for (row, column) in
                        (0..factor).flat_map(|row| (0..factor).map(move |column| (row, column)))
                    {
                        let (column, row) =
                            (unit_column * factor + column, unit_row * factor + row);
                        self.block(scan, (component, column, row), &mut last, &mut bits);
                    }
                }
            }
        }
        bits.end()
    }

    fn block(
        &self,
        scan: &Scan,
        (component, column, row): (usize, usize, usize),
        last: &mut [i32; 4],
        bits: &mut Bits,
    ) {
        let values = coefficients(component, column, row, self.details);
        let (before, now) = scan.bits;
        if scan.band.0 == 0 {
            if before > 0 {
                bits.put(values[0] as u32 & 1, 1);
            } else {
                let first = values[0] >> now;
                bits.put_difference(first - last[component]);
                last[component] = first;
            }
        }
        if scan.band.1 == 0 {
            return;
        }
        if before > 0 {
            return refine(&values, bits);
        }
        let mut zeros = 0;
        for value in &values[1..] {
            // Towards zero.
            let value = value / (1 << now);
            if value == 0 {
                zeros += 1;
            } else {
                bits.put_coefficient(zeros, value);
                zeros = 0;
            }
        }
        bits.put_symbol(0);
    }
}

/// The last bit of each coefficient but the first. No coefficient within the details is zero.
fn refine(values: &[i32; 16], bits: &mut Bits) {
    let mut corrections = vec![];
    for value in &values[1..] {
        match value.unsigned_abs() {
            0 => {}
            1 => {
                bits.put_symbol(1);
                bits.put((*value > 0).into(), 1);
                corrections.drain(..).for_each(|bit| bits.put(bit, 1));
            }
            more => corrections.push(more & 1),
        }
    }
    bits.put_symbol(0);
    corrections.into_iter().for_each(|bit| bits.put(bit, 1));
}
