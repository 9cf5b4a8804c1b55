//! A file in memory for decoders that read it as a stream. It reads the clock from time to time.

use std::io::{BufRead, Error, ErrorKind, Read, Result, Seek, SeekFrom};

use super::clock::Clock;
use crate::work::Workspace;

/// The bytes that a decoder gets at a time. Compressed data can become a thousand times as large.
const PIECE_BYTES: usize = 512;

/// How often a decoder may ask for data between two readings of the clock. It may ask many times
/// without using up a byte, for a run of pixels.
const ASKED_MAX: usize = 64;

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// Bytes that are read after those of the file.
    tail: &'a [u8],
    /// The next byte to be read.
    position: usize,
    /// The position at which the next reading is due.
    window: usize,
    /// How often a decoder asked since the last reading.
    asked: usize,
    clock: Clock<'a>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], work: Workspace<'a>) -> Self {
        Self { bytes, tail: &[], position: 0, window: 0, asked: 0, clock: Clock::new(work) }
    }

    /// The same file, with `tail` behind it.
    pub(super) fn followed_by(self, tail: &'a [u8]) -> Self {
        Self { tail, ..self }
    }

    /// The next piece.
    #[inline]
    fn piece(&mut self) -> &'a [u8] {
        self.asked += 1;
        if self.position >= self.window || self.asked > ASKED_MAX {
            self.poll();
        }
        let rest = match self.position.checked_sub(self.bytes.len()) {
            None => &self.bytes[self.position..],
            Some(behind) => self.tail.get(behind..).unwrap_or_default(),
        };
        &rest[..rest.len().min(PIECE_BYTES)]
    }

    #[cold]
    fn poll(&mut self) {
        self.clock.poll();
        self.window = self.position.saturating_add(PIECE_BYTES);
        self.asked = 0;
    }
}

impl Read for Reader<'_> {
    #[inline]
    fn read(&mut self, target: &mut [u8]) -> Result<usize> {
        let piece = self.piece();
        let len = piece.len().min(target.len());
        target[..len].copy_from_slice(&piece[..len]);
        self.position += len;
        Ok(len)
    }
}

impl BufRead for Reader<'_> {
    #[inline]
    fn fill_buf(&mut self) -> Result<&[u8]> {
        Ok(self.piece())
    }

    #[inline]
    fn consume(&mut self, len: usize) {
        self.position = self.position.saturating_add(len);
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let (from, offset) = match to {
            SeekFrom::Start(position) => (position, 0),
            SeekFrom::End(offset) => (self.bytes.len() as u64, offset),
            SeekFrom::Current(offset) => (self.position as u64, offset),
        };
        let to = from.checked_add_signed(offset).and_then(|to| usize::try_from(to).ok());
        self.position = to.ok_or_else(|| Error::from(ErrorKind::InvalidInput))?;
        // Reading the same bytes again is new work, too.
        self.window = 0;
        Ok(self.position as u64)
    }
}
