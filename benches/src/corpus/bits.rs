//! Writers of bits, in the two orders that formats of pictures use.

/// The first bit is the lowest of its byte: WebP and GIF.
#[derive(Default)]
pub(super) struct LowFirst {
    bytes: Vec<u8>,
    /// Bits in the last byte.
    used: u32,
}

impl LowFirst {
    /// The lowest `count` bits of `value`, the lowest first.
    pub(super) fn push(&mut self, value: u32, count: u32) {
        for bit in 0..count {
            if self.used == 0 {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> bit & 1) as u8) << self.used;
            }
            self.used = (self.used + 1) % 8;
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The first bit is the highest of its byte, and a byte 0xFF is followed by a 0: JPEG.
#[derive(Default)]
pub(super) struct HighFirst {
    bytes: Vec<u8>,
    current: u8,
    used: u32,
}

impl HighFirst {
    /// The lowest `count` bits of `value`, the highest first.
    pub(super) fn push(&mut self, value: u32, count: u32) {
        for bit in (0..count).rev() {
            self.current = self.current << 1 | (value >> bit & 1) as u8;
            self.used += 1;
            if self.used == 8 {
                self.bytes.push(self.current);
                if self.current == 0xff {
                    self.bytes.push(0);
                }
                (self.current, self.used) = (0, 0);
            }
        }
    }

    /// Filled up with zeros.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        while self.used != 0 {
            self.push(0, 1);
        }
        self.bytes
    }
}
