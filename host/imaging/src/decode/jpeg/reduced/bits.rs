//! The bits of a scan, without the bytes that stuff it.

use memchr::memchr;

use super::super::marker;

/// A code and the value behind it have at most so many bits.
const NEEDED: u32 = 32;

/// Reads bits, the most significant one of a byte first. It never reads past a marker: zeros stand
/// for the bits behind the data, and [`is_overrun`](Self::is_overrun) says whether they were used.
///
/// It is copied into a block's decoder and back, so that the compiler keeps it in registers there.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// The next byte that is not in the buffer.
    position: usize,
    /// The next bits, the first one in the most significant place.
    buffer: u64,
    /// The bits in the buffer.
    count: u32,
    /// The zeros that were put behind the data.
    zeros: u32,
}

impl<'a> Bits<'a> {
    /// The bits of a scan whose data begin at `position`.
    pub(super) fn new(bytes: &'a [u8], position: usize) -> Self {
        Self { bytes, position, buffer: 0, count: 0, zeros: 0 }
    }

    /// Make the bits of a code and of its value ready.
    #[inline]
    pub(super) fn fill(&mut self) {
        if self.count < NEEDED {
            self.load();
        }
    }

    #[inline]
    fn load(&mut self) {
        let next = self.bytes.get(self.position..).and_then(<[u8]>::first_chunk);
        if let Some(word) = next.copied().map(u64::from_be_bytes)
            && !has_marker_byte(word)
        {
            // What lies behind the counted bits is loaded again next time.
            self.buffer |= word >> self.count;
            self.position += (63 - self.count as usize) / 8;
            self.count |= 56;
        } else {
            *self = self.with_bytes();
        }
    }

    /// The same with more bits, which are loaded byte by byte.
    #[cold]
    #[inline(never)]
    fn with_bytes(mut self) -> Self {
        while self.count <= 56 {
            let byte = match self.bytes.get(self.position..).unwrap_or_default() {
                [0xff, marker::STUFFED, ..] => {
                    self.position += 2;
                    0xff
                }
                [0xff, ..] | [] => {
                    self.zeros += 64 - self.count;
                    self.count = 64;
                    return self;
                }
                [byte, ..] => {
                    self.position += 1;
                    *byte
                }
            };
            self.buffer |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
        self
    }

    /// The next `len` bits: 1 to 16 of those that are ready.
    #[inline]
    pub(super) fn peek(&self, len: u32) -> usize {
        (self.buffer >> (64 - len)) as usize
    }

    /// Go on by `len` of the bits that are ready.
    #[inline]
    pub(super) fn skip(&mut self, len: u32) {
        self.buffer <<= len;
        self.count -= len;
    }

    /// The next `len` bits: 0 to 16 of those that are ready.
    #[inline]
    pub(super) fn take(&mut self, len: u32) -> i32 {
        if len == 0 {
            return 0;
        }
        let bits = self.peek(len);
        self.skip(len);
        bits as i32
    }

    /// The next bit.
    #[inline]
    pub(super) fn take_bit(&mut self) -> bool {
        self.fill();
        self.take(1) == 1
    }

    /// The value of `len` bits, 0 to 15 of those that are ready: its first half is negative.
    #[inline]
    pub(super) fn take_value(&mut self, len: u32) -> i32 {
        value_of(self.take(len), len)
    }

    /// Whether more bits were used than the data have.
    pub(super) fn is_overrun(&self) -> bool {
        self.count < self.zeros
    }

    /// Go on behind the next restart marker. False if another marker or none comes first.
    pub(super) fn restart(&mut self) -> bool {
        let mut from = self.position;
        while let Some(offset) = self.bytes.get(from..).and_then(|rest| memchr(0xff, rest)) {
            from += offset + 1;
            match self.bytes.get(from) {
                Some(&marker::STUFFED) => from += 1,
                Some(0xff) => {}
                Some(&(marker::RST_FIRST..=marker::RST_LAST)) => {
                    *self = Self::new(self.bytes, from + 1);
                    return true;
                }
                _ => return false,
            }
        }
        false
    }
}

/// The value that these `len` bits stand for.
#[inline]
pub(super) fn value_of(bits: i32, len: u32) -> i32 {
    let half = (1 << len) >> 1;
    if bits < half { bits - (1 << len) + 1 } else { bits }
}

/// Whether one of the eight bytes is 0xff.
#[inline]
fn has_marker_byte(word: u64) -> bool {
    (!word).wrapping_sub(0x0101_0101_0101_0101) & word & 0x8080_8080_8080_8080 != 0
}
