//! Buffers: bytes while they are written, and bytes that never change again.
//!
//! Invariant: no reader ever sees bytes of an earlier owner. A [`BufferMut`] shows only what was
//! written into it since it was taken from the pool. Foreign code (a decoder, a socket, a runtime)
//! is lent zeroed bytes only, and freezing zeroes the rest.

use std::sync::Arc;

use bytemuck::Pod;

use crate::block::Block;
use crate::free_blocks::{FreeBlocks, Taken};

/// A pooled buffer while it is written, from its beginning to its end.
///
/// Its memory may hold an earlier owner's bytes. It shows and lends only bytes that were written
/// since it was taken, by us or as zeros.
pub struct BufferMut {
    block: Block,
    len: usize,
    /// The bytes up to here were written since the block was taken.
    written: usize,
    /// The bytes from `written` up to here are not an earlier owner's: zeros, or written by a
    /// borrower.
    clean: usize,
    /// The bytes from `written` up to here were lent.
    lent: usize,
    free: Arc<FreeBlocks>,
}

impl BufferMut {
    /// A buffer for `len` bytes in a block of `free`.
    pub(crate) fn begin(free: Arc<FreeBlocks>, len: usize) -> Self {
        let Taken { block, is_zero } = free.take(len);
        let clean = if is_zero { len } else { 0 };
        Self { block, len, written: 0, clean, lent: 0, free }
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
    }

    /// Write `len` zeros after the bytes written before, as far as there is room, and return them
    /// to be overwritten.
    pub fn append_zeros(&mut self, len: usize) -> &mut [u8] {
        let start = self.written;
        let end = start + len.min(self.room());
        let lent = self.lent.clamp(start, end);
        self.block.bytes_mut()[start..lent].fill(0);
        self.clean(end);
        self.written = end;
        &mut self.block.bytes_mut()[start..end]
    }

    /// The next bytes to be written, at most `len`: zeros, or what was written to bytes lent
    /// before. A reader of a socket writes there, and calls [`advance`](Self::advance) with the
    /// number of bytes that belong to the buffer.
    pub fn lend(&mut self, len: usize) -> &mut [u8] {
        let end = self.written + len.min(self.room());
        self.clean(end);
        self.lent = self.lent.max(end);
        &mut self.block.bytes_mut()[self.written..end]
    }

    /// Take the first `len` of the bytes lent as written.
    pub fn advance(&mut self, len: usize) {
        debug_assert!(len <= self.lent.saturating_sub(self.written), "{len} bytes were not lent");
        self.written = self.lent.min(self.written + len).max(self.written);
    }

    /// Remove an earlier owner's bytes up to `end`.
    fn clean(&mut self, end: usize) {
        if self.clean < end {
            let from = self.clean.max(self.written);
            self.block.bytes_mut()[from..end].fill(0);
            self.clean = end;
        }
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
/// they are dropped. Adopted ones lie where their owner has them.
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
    /// Whether its memory is a [`MemorySource`](crate::MemorySource)'s.
    pub(crate) fn is_sourced(&self) -> bool {
        matches!(&self.0, Memory::Pooled(BufferMut { block: Block::Sourced(_), .. }))
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.as_bytes().len())
    }
}
