//! A JPEG encoder for tests: blocks of one colour each.

/// An image to be made.
#[derive(Clone, Copy)]
pub(crate) struct Sketch {
    pub(crate) width: u16,
    pub(crate) height: u16,
    /// Whether colours have half the resolution.
    pub(crate) is_subsampled: bool,
    /// Units between two restart markers; none where 0.
    pub(crate) restart: u16,
}

/// Bits, stuffed as they are in a scan.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    pending: u32,
    count: u32,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for bit in (0..count).rev() {
            self.pending = self.pending << 1 | (value >> bit & 1);
            self.count += 1;
            if self.count == 8 {
                self.bytes.push(self.pending as u8);
                if self.pending == 0xff {
                    self.bytes.push(0);
                }
                (self.pending, self.count) = (0, 0);
            }
        }
    }

    fn align(&mut self) {
        while self.count > 0 {
            self.put(1, 1);
        }
    }
}

impl Sketch {
    pub(crate) fn plain(width: u16, height: u16) -> Self {
        Self { width, height, is_subsampled: false, restart: 0 }
    }

    /// Markers and tables, up to the scan's data.
    pub(crate) fn head(&self) -> Vec<u8> {
        let mut head = vec![0xff, 0xd8, 0xff, 0xdb, 0, 67, 0];
        head.extend([8; 64]);
        head.extend([0xff, 0xc0, 0, 17, 8]);
        head.extend(self.height.to_be_bytes());
        head.extend(self.width.to_be_bytes());
        let sampling = if self.is_subsampled { 0x22 } else { 0x11 };
        head.extend([3, 1, sampling, 0, 2, 0x11, 0, 3, 0x11, 0]);
        // Twelve codes of four bits for how long a difference is; one of one bit for "no more".
        head.extend([0xff, 0xc4, 0, 31, 0x00, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        head.extend(0..12);
        head.extend([0xff, 0xc4, 0, 20, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        if self.restart > 0 {
            head.extend([0xff, 0xdd, 0, 4]);
            head.extend(self.restart.to_be_bytes());
        }
        head.extend([0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0]);
        head
    }

    /// The scan's data, for the first `rows` of units.
    pub(crate) fn data(&self, rows: usize) -> Vec<u8> {
        let side = if self.is_subsampled { 16 } else { 8 };
        let columns = usize::from(self.width).div_ceil(side);
        let blocks = if self.is_subsampled { 6 } else { 3 };
        let mut bits = Bits::default();
        for unit in 0..rows * columns {
            if self.restart > 0 && unit > 0 && unit.is_multiple_of(self.restart.into()) {
                bits.align();
                bits.bytes
                    .extend([0xff, 0xd0 + ((unit / usize::from(self.restart) - 1) % 8) as u8]);
            }
            for block in 0..blocks {
                // Up and down by five bits.
                let value = ((unit * 7 + block * 5) % 16) as u32 | 16;
                bits.put(5, 4);
                bits.put(if unit % 2 == 0 { value } else { 31 - value }, 5);
                bits.put(0, 1);
            }
        }
        bits.align();
        bits.bytes
    }

    pub(crate) fn rows(&self) -> usize {
        usize::from(self.height).div_ceil(if self.is_subsampled { 16 } else { 8 })
    }

    pub(crate) fn whole(&self) -> Vec<u8> {
        [self.head(), self.data(self.rows()), vec![0xff, 0xd9]].concat()
    }
}
