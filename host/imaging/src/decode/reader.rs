//! A file in memory for decoders that read it as a stream, with a look at the clock now and then.

use std::cell::RefCell;
use std::io::{BufRead, Cursor, Read, Result, Seek, SeekFrom};

use super::clock::Clock;
use crate::Work;

/// How much is given to a decoder at a time. Of compressed data a thousand times as much can become.
const PIECE_BYTES: usize = 512;

pub(super) struct Reader<'a> {
    bytes: Cursor<&'a [u8]>,
    clock: RefCell<Clock<'a>>,
    /// Bytes read since the last look, in small pieces.
    unlooked: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], work: Work<'a>) -> Self {
        let clock = RefCell::new(Clock::new(work));
        Self { bytes: Cursor::new(bytes), clock, unlooked: 0 }
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, target: &mut [u8]) -> Result<usize> {
        self.unlooked += target.len();
        if self.unlooked >= PIECE_BYTES {
            self.unlooked = 0;
            self.clock.get_mut().look();
        }
        self.bytes.read(target)
    }
}

impl BufRead for Reader<'_> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        self.clock.get_mut().look();
        let rest = self.bytes.fill_buf()?;
        Ok(&rest[..rest.len().min(PIECE_BYTES)])
    }

    fn consume(&mut self, len: usize) {
        self.bytes.consume(len);
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.clock.get_mut().look();
        self.bytes.seek(to)
    }
}
