//! Buffers: bytes while they are written, and bytes that never change again.
//!
//! Invariant: a reader never sees bytes of an earlier owner, even if the writer is faulty. A
//! [`BufferMut`] shows only what was written into it since it was taken from the pool. Foreign code
//! (a decoder, a runtime) gets zeroed bytes only, and freezing zeroes the rest.

use std::sync::Arc;

use bytemuck::Pod;

use crate::block::Block;
use crate::free_blocks::{FreeBlocks, Taken};

/// A pooled buffer while it is written, from its beginning to its end.
///
/// Its memory may hold an earlier owner's bytes. It shows only bytes that were written since the
/// memory was taken, by its writer or as zeros.
pub struct BufferMut {
    block: Block,
    len: usize,
    /// The bytes up to here were written since the block was taken.
    written: usize,
    /// Whether the bytes from `written` on are zeros. If not, they may be an earlier owner's.
    is_zero: bool,
    free: Arc<FreeBlocks>,
}

impl BufferMut {
    /// A buffer for `len` bytes in a block of `free`.
    pub(crate) fn begin(free: Arc<FreeBlocks>, len: usize) -> Self {
        let Taken { block, is_zero } = free.take(len);
        Self { block, len, written: 0, is_zero, free }
    }

    /// How many bytes are still to be written.
    pub fn room(&self) -> usize {
        self.len - self.written
    }

    /// Write `bytes` after those written before, as far as there is room.
    pub fn append(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.len() <= self.room(), "{} bytes for {}", bytes.len(), self.room());
        let len = bytes.len().min(self.room());
        self.block.bytes_mut()[self.written..][..len].copy_from_slice(&bytes[..len]);
        self.written += len;
    }

    /// Write `values` after the bytes written before, as far as there is room.
    pub fn extend<T: Pod>(&mut self, values: impl IntoIterator<Item = T>) {
        // If the iterator panics, the values so far do not count as written.
        let was_zero = std::mem::replace(&mut self.is_zero, false);
        let rest = &mut self.block.bytes_mut()[self.written..self.len];
        let whole = rest.len() / size_of::<T>() * size_of::<T>();
        match bytemuck::try_cast_slice_mut::<u8, T>(&mut rest[..whole]) {
            Ok(slots) => {
                let mut count = 0;
                for (slot, value) in slots.iter_mut().zip(values) {
                    *slot = value;
                    count += 1;
                }
                self.written += count * size_of::<T>();
            }
            // After bytes of another alignment.
            Err(_) => values.into_iter().for_each(|value| self.append(bytemuck::bytes_of(&value))),
        }
        self.is_zero = was_zero;
    }

    /// Write `len` zeros after the bytes written before, as far as there is room, and return them
    /// to be overwritten.
    pub fn append_zeros(&mut self, len: usize) -> &mut [u8] {
        let start = self.written;
        let end = start + len.min(self.room());
        if !self.is_zero {
            self.block.bytes_mut()[start..end].fill(0);
        }
        self.written = end;
        &mut self.block.bytes_mut()[start..end]
    }

    /// The buffer, from now on immutable. Bytes that were not written are zero.
    pub fn freeze(mut self) -> Arc<Buffer> {
        if self.room() > 0 {
            self.append_zeros(self.room());
        }
        Arc::new(Buffer(Memory::Pooled(self)))
    }
}

/// The bytes written.
impl AsRef<[u8]> for BufferMut {
    fn as_ref(&self) -> &[u8] {
        &self.block.bytes()[..self.written]
    }
}

/// The bytes written.
impl AsMut<[u8]> for BufferMut {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.block.bytes_mut()[..self.written]
    }
}

impl Drop for BufferMut {
    fn drop(&mut self) {
        self.free.give_back(std::mem::take(&mut self.block));
    }
}

/// Immutable bytes. Those from a pool are aligned to 64, and their memory returns to the pool when
/// they are dropped. Adopted bytes stay where their owner has them.
pub struct Buffer(Memory);

enum Memory {
    Pooled(BufferMut),
    Adopted(Box<dyn AsRef<[u8]> + Send + Sync>),
}

impl Buffer {
    /// The bytes of `owner`, kept alive with it.
    pub(crate) fn adopt(owner: Box<dyn AsRef<[u8]> + Send + Sync>) -> Self {
        Self(Memory::Adopted(owner))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Memory::Pooled(buffer) => buffer.as_ref(),
            Memory::Adopted(owner) => (**owner).as_ref(),
        }
    }
}

#[cfg(test)]
impl Buffer {
    /// Whether its memory came from a [`MemorySource`](crate::MemorySource).
    pub(crate) fn is_sourced(&self) -> bool {
        matches!(&self.0, Memory::Pooled(BufferMut { block: Block::Sourced(_), .. }))
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.as_bytes().len())
    }
}
