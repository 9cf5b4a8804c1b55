//! The bytes in memory that zune-jpeg reads. From time to time it asks the caller whether to go on.
//!
//! zune-jpeg cannot be interrupted, but it reads all the time. So it is shown the bytes only up to
//! the place where the next reading of the clock is due.

use std::panic::resume_unwind;

use zune_core::bytestream::{ZByteIoError, ZByteReaderTrait, ZSeekFrom};

use super::stream::Stream;
use crate::decode::clock::Clock;
use crate::work::Workspace;

/// The bytes that are read between two readings of the clock: about 10 us of decoding. They are few
/// because two bytes in a scan of a progressive image can stand for 32,767 unchanged blocks.
const WINDOW_BYTES: usize = 256;
const SCAN_WINDOW_BYTES: usize = 32;

/// The bytes of padding that may be read ahead: eight bytes of ones, each with its stuffing byte.
const READ_AHEAD_BYTES: usize = 16;

pub(super) struct JpegSource<'a> {
    bytes: &'a [u8],
    /// The next byte to be read.
    position: usize,
    /// Where the next check is due.
    window: usize,
    /// The position from which on the bits are not the data's own.
    padding: usize,
    window_bytes: usize,
    clock: Clock<'a>,
}

/// The decoder took more bits than the data have. This is the payload of the panic that ends it: it
/// would otherwise go through the whole image without reading.
pub(super) struct Overrun;

impl<'a> JpegSource<'a> {
    pub(super) fn new(stream: &'a Stream, work: Workspace<'a>) -> Self {
        Self {
            bytes: &stream.bytes,
            position: 0,
            window: 0,
            padding: stream.padding + READ_AHEAD_BYTES,
            window_bytes: if stream.is_one_scan { WINDOW_BYTES } else { SCAN_WINDOW_BYTES },
            clock: Clock::new(work),
        }
    }

    /// Show the next bytes, if there are any.
    #[cold]
    fn open(&mut self) {
        self.clock.poll();
        self.window = (self.position + self.window_bytes).min(self.bytes.len());
    }

    /// The next `len` bytes.
    #[inline]
    fn peek(&mut self, len: usize) -> Option<&'a [u8]> {
        if self.position + len > self.window {
            self.open();
        }
        self.bytes.get(self.position..self.position + len)
    }

    fn none(&self, len: usize) -> ZByteIoError {
        ZByteIoError::NotEnoughBytes(len, self.bytes.len().saturating_sub(self.position))
    }
}

impl ZByteReaderTrait for JpegSource<'_> {
    #[inline]
    fn read_byte_no_error(&mut self) -> u8 {
        let Some(&[byte]) = self.peek(1) else { return 0 };
        self.position += 1;
        if self.position > self.padding {
            resume_unwind(Box::new(Overrun));
        }
        byte
    }

    #[inline]
    fn read_exact_bytes(&mut self, target: &mut [u8]) -> Result<(), ZByteIoError> {
        self.peek_exact_bytes(target)?;
        self.position += target.len();
        Ok(())
    }

    fn read_bytes(&mut self, target: &mut [u8]) -> Result<usize, ZByteIoError> {
        let len = self.peek_bytes(target)?;
        self.position += len;
        Ok(len)
    }

    fn peek_bytes(&mut self, target: &mut [u8]) -> Result<usize, ZByteIoError> {
        self.peek(1);
        let rest = self.bytes.get(self.position..).unwrap_or(&[]);
        let len = rest.len().min(target.len());
        target[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    #[inline]
    fn peek_exact_bytes(&mut self, target: &mut [u8]) -> Result<(), ZByteIoError> {
        let Some(bytes) = self.peek(target.len()) else { return Err(self.none(target.len())) };
        target.copy_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn z_seek(&mut self, from: ZSeekFrom) -> Result<u64, ZByteIoError> {
        let position = match from {
            ZSeekFrom::Start(position) => i64::try_from(position)?,
            ZSeekFrom::End(offset) => (self.bytes.len() as i64).saturating_add(offset),
            ZSeekFrom::Current(offset) => (self.position as i64).saturating_add(offset),
        };
        self.position = usize::try_from(position)?;
        Ok(position as u64)
    }

    #[inline]
    fn is_eof(&mut self) -> Result<bool, ZByteIoError> {
        Ok(self.position >= self.bytes.len())
    }

    #[inline]
    fn z_position(&mut self) -> Result<u64, ZByteIoError> {
        Ok(self.position as u64)
    }

    fn read_remaining(&mut self, sink: &mut Vec<u8>) -> Result<usize, ZByteIoError> {
        let rest = self.bytes.get(self.position..).unwrap_or(&[]);
        sink.extend_from_slice(rest);
        self.position += rest.len();
        Ok(rest.len())
    }
}
