//! Lossless WebPs put together bit by bit.

/// Bits put together in bytes, the lowest first.
#[derive(Default)]
pub(crate) struct Bits {
    pub(crate) bytes: Vec<u8>,
    used: usize,
}

impl Bits {
    pub(crate) fn push(&mut self, value: u32, count: u32) -> &mut Self {
        for bit in 0..count {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            self.bytes[self.used / 8] |= ((value >> bit & 1) as u8) << (self.used % 8);
            self.used += 1;
        }
        self
    }

    /// A code of one symbol, for which no bit is written.
    pub(crate) fn one_symbol(&mut self, symbol: u32) {
        self.push(0b101, 3).push(symbol, 8);
    }

    /// A code whose first `2^length` symbols have `length` bits, in 50 to 70 bits.
    pub(crate) fn flat(&mut self, length: u32) {
        let at = LENGTHS.iter().position(|other| *other == length).unwrap() as u32;
        self.push(0, 1).push(at - 3, 4);
        (0..=at).for_each(|other| {
            self.push((other == at).into(), 3);
        });
        self.push(1, 1).push(5, 3).push((1 << length) - 2, 12);
    }
}

/// The order in which the format lists the lengths of codes.
pub(crate) const LENGTHS: [u32; 19] =
    [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
