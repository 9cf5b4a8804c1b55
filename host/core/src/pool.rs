//! Pools of tensor buffers: aligned memory that is used again, or memory of other owners that is
//! kept alive.
//!
//! Bytes that are in memory already, such as a request's body or a runtime's output, are adopted
//! without a copy.

use std::sync::Arc;

use crate::block::{MemorySource, bytes_of, class_of};
use crate::buffer::{Buffer, BufferMut};
use crate::free_blocks::FreeBlocks;

/// A pool of tensor buffers; clones share it.
#[derive(Clone)]
pub struct BufferPool {
    free: Arc<FreeBlocks>,
}

impl BufferPool {
    /// A pool that keeps at most `retained_bytes_max` bytes of unused buffers.
    pub fn new(retained_bytes_max: usize) -> Self {
        Self::with(None, retained_bytes_max)
    }

    /// Like [`new`](Self::new), with memory from `source`.
    pub fn of(source: impl MemorySource + 'static, retained_bytes_max: usize) -> Self {
        Self::with(Some(Box::new(source)), retained_bytes_max)
    }

    fn with(source: Option<Box<dyn MemorySource>>, retained_bytes_max: usize) -> Self {
        Self { free: Arc::new(FreeBlocks::new(source, retained_bytes_max)) }
    }

    /// The bytes of unused buffers that it keeps now.
    pub fn retained_bytes(&self) -> usize {
        self.free.lists.lock().retained_bytes
    }

    /// Free the memory of buffers that were unused since the last trim.
    pub fn trim(&self) {
        self.free.trim();
    }

    /// Whether its memory comes from a [`MemorySource`], such as pinned memory of a device.
    pub fn is_sourced(&self) -> bool {
        self.free.is_sourced()
    }

    /// A buffer holding a copy of `bytes`.
    pub fn copy_from(&self, bytes: &[u8]) -> Arc<Buffer> {
        let mut buffer = self.begin(bytes.len());
        buffer.append(bytes);
        buffer.freeze()
    }

    /// A buffer of `len` zeros that `write` may write to.
    pub fn fill(&self, len: usize, write: impl FnOnce(&mut [u8])) -> Arc<Buffer> {
        let mut buffer = self.zeroed(len);
        write(buffer.as_mut());
        buffer.freeze()
    }

    /// A buffer of `len` zeros, for foreign code to write to.
    pub fn zeroed(&self, len: usize) -> BufferMut {
        let mut buffer = self.begin(len);
        buffer.append_zeros(len);
        buffer
    }

    /// A buffer for `len` bytes that is written from its beginning to its end.
    pub fn begin(&self, len: usize) -> BufferMut {
        BufferMut::begin(self.free.clone(), len)
    }

    /// The bytes of memory that a buffer of `len` bytes takes.
    pub fn bytes_taken(len: usize) -> usize {
        bytes_of(class_of(len))
    }

    /// A buffer of the bytes of `owner`. If they are aligned to `alignment` bytes, they stay where
    /// they are and `owner` is kept alive. If not, the buffer is a copy.
    pub fn adopt(
        &self,
        owner: impl AsRef<[u8]> + Send + Sync + 'static,
        alignment: usize,
    ) -> Arc<Buffer> {
        let bytes = owner.as_ref();
        if bytes.is_empty() || (bytes.as_ptr() as usize).is_multiple_of(alignment.max(1)) {
            return Arc::new(Buffer::adopt(Box::new(owner)));
        }
        self.copy_from(bytes)
    }

    /// Like [`fill`](Self::fill), for a writer that can fail.
    ///
    /// # Errors
    /// The writer's own error.
    pub fn try_fill<E>(
        &self,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Arc<Buffer>, E> {
        let mut outcome = Ok(());
        let buffer = self.fill(len, |target| outcome = write(target));
        outcome.map(|()| buffer)
    }
}

#[cfg(test)]
mod tests;
