//! A file in memory that an encoder writes: of bounded length, and with a clock that is read from
//! time to time.

use std::io::{Error, Result, Write};
use std::time::{Duration, Instant};

use crate::error::{Bound, ImageError};
use crate::work::{Size, Workspace};

/// The longest work of an encoder between two checks.
const BETWEEN: Duration = Duration::from_micros(500);

/// The clock is read after this many bytes of the file. Of a picture of one colour, they are some
/// 10,000 pixels.
const READ_AFTER_BYTES: usize = 128;

pub(super) struct File<'a> {
    bytes: Vec<u8>,
    limit: usize,
    /// The size of the picture.
    size: Size,
    /// The caller's check, and when it was made. None for an encoder that fails if it is ended.
    check: Option<(Workspace<'a>, Instant)>,
    /// Bytes since the clock was read.
    unread: usize,
    /// Why the encoder was ended.
    refusal: Option<ImageError>,
}

impl<'a> File<'a> {
    /// A file of up to `limit` bytes, whose memory is taken at once.
    pub(super) fn with_room(size: Size, limit: usize) -> Self {
        let bytes = Vec::with_capacity(limit.saturating_add(1));
        Self { bytes, limit, size, check: None, unread: 0, refusal: None }
    }

    /// A file of up to `limit` bytes, for an encoder that writes nearly all of it at once.
    pub(super) fn growing(size: Size, limit: usize) -> Self {
        Self { bytes: vec![], limit, size, check: None, unread: 0, refusal: None }
    }

    /// The same file. Its encoder is ended if the check of `work` refuses.
    pub(super) fn checked_by(self, work: Workspace<'a>) -> Self {
        Self { check: Some((work, Instant::now())), ..self }
    }

    /// The bytes that a file [with room](Self::with_room) holds until it is finished: all of its
    /// room, and the copy if less than half of it was used.
    pub(super) fn bytes_held(limit: u64) -> u64 {
        limit + limit / 2 + 2
    }

    /// The file's bytes, if the encoder has written all of them.
    pub(super) fn finish(
        self,
        written: std::result::Result<(), ImageError>,
    ) -> std::result::Result<Vec<u8>, ImageError> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        written?;
        let mut bytes = self.bytes;
        if bytes.len() <= bytes.capacity() / 2 {
            bytes.shrink_to_fit();
        }
        Ok(bytes)
    }

    /// End the encoder, which passes the error on to its caller.
    #[cold]
    fn refuse(&mut self, refusal: ImageError) -> Result<()> {
        let error = Error::other(refusal.to_string());
        self.refusal = Some(refusal);
        Err(error)
    }

    #[cold]
    fn poll(&mut self) -> Result<()> {
        self.unread = 0;
        let Some((work, checked)) = &mut self.check else { return Ok(()) };
        if checked.elapsed() < BETWEEN {
            return Ok(());
        }
        *checked = Instant::now();
        match (work.check)() {
            Ok(()) => Ok(()),
            Err(stopped) => self.refuse(stopped.into()),
        }
    }
}

impl Write for File<'_> {
    #[inline]
    fn write(&mut self, data: &[u8]) -> Result<usize> {
        self.write_all(data)?;
        Ok(data.len())
    }

    #[inline]
    fn write_all(&mut self, data: &[u8]) -> Result<()> {
        if data.len() > self.limit.saturating_sub(self.bytes.len()) {
            let (width, height) = (self.size.width.into(), self.size.height.into());
            let limit = Bound::FileBytes(self.limit);
            return self.refuse(ImageError::TooLarge { width, height, limit });
        }
        // One more, for the byte that makes a WebP's length even.
        self.bytes.reserve_exact(data.len() + 1);
        self.bytes.extend_from_slice(data);
        self.unread += data.len();
        if self.unread >= READ_AFTER_BYTES { self.poll() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
