//! Numbers of a few bits each, and runs of them.

use super::thrift::Reader;

/// The bytes that a number of 32 bits may touch.
const TOUCHED_MAX: usize = 5;

/// Numbers side by side, the lowest bits first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// The next bit.
    at: usize,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next number, of at most 32 bits.
    pub(super) fn next(&mut self, width: u32) -> Option<u32> {
        let end = self.at + width as usize;
        let rest = self.bytes.get(self.at / 8..).filter(|_| end <= self.bytes.len() * 8)?;
        let mut window = [0; size_of::<u64>()];
        let touched = rest.len().min(TOUCHED_MAX);
        window[..touched].copy_from_slice(&rest[..touched]);
        let value = u64::from_le_bytes(window) >> (self.at % 8);
        self.at = end;
        Some((value & ((1 << width) - 1)) as u32)
    }
}

/// Numbers of the same width, of which some are written once for many.
#[derive(Debug)]
pub(super) struct Runs<'a> {
    rest: Reader<'a>,
    width: u32,
    run: Run<'a>,
    /// How many numbers of the run are left.
    left: u64,
}

#[derive(Debug)]
enum Run<'a> {
    Same(u32),
    Packed(Bits<'a>),
}

impl<'a> Runs<'a> {
    /// None: a number has more than 32 bits.
    pub(super) fn new(bytes: &'a [u8], width: u8) -> Option<Self> {
        let width = u32::from(width);
        let rest = Reader::new(bytes);
        (width <= u32::BITS).then_some(Self { rest, width, run: Run::Same(0), left: 0 })
    }

    pub(super) fn next(&mut self) -> Option<u32> {
        while self.left == 0 {
            self.begin()?;
        }
        self.left -= 1;
        match &mut self.run {
            Run::Same(value) => Some(*value),
            Run::Packed(bits) => bits.next(self.width),
        }
    }

    fn begin(&mut self) -> Option<()> {
        let head = self.rest.varint()?;
        let count = head >> 1;
        if head & 1 == 0 {
            let bytes = self.rest.take(self.width.div_ceil(8) as usize)?;
            let mut value = [0; size_of::<u32>()];
            value[..bytes.len()].copy_from_slice(bytes);
            (self.run, self.left) = (Run::Same(u32::from_le_bytes(value)), count);
            return Some(());
        }
        // The last run may be cut off behind its last number.
        let bytes = count.checked_mul(self.width.into())?.min(self.rest.rest().len() as u64);
        let bits = Bits::new(self.rest.take(bytes as usize)?);
        (self.run, self.left) = (Run::Packed(bits), count.checked_mul(8)?);
        Some(())
    }
}
