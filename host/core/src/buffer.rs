//! Memory for tensors: pooled and aligned, or somebody else's, kept alive.
//!
//! A fresh 600 KB allocation costs a mmap and 150 page faults, several times the arithmetic done on
//! it, so buffers go back to a free list when their last reader lets go. What lies in memory already,
//! a request's body or a runtime's output, is taken as it is.
//!
//! Invariant: a pooled buffer handed out was written over its whole length by whoever asked for it, so no
//! reader sees bytes of an earlier owner.

use std::sync::{Arc, Mutex, PoisonError};

/// Alignment of every buffer, in bytes: a cache line, and what ONNX Runtime's kernels like best.
const ALIGNMENT: usize = 64;

/// The smallest size class, in lines: 4 KiB.
const SMALLEST_CLASS_LINES: usize = 64;

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

type Lines = Box<[Line]>;

/// A pool of tensor buffers; clones share it.
#[derive(Clone)]
pub struct BufferPool {
    shared: Arc<Shared>,
}

struct Shared {
    free: Mutex<FreeLists>,
    retained_bytes_max: usize,
}

#[derive(Default)]
struct FreeLists {
    /// One list per power of two of [`SMALLEST_CLASS_LINES`].
    classes: Vec<Vec<Lines>>,
    retained_bytes: usize,
}

impl BufferPool {
    /// A pool that keeps at most `retained_bytes_max` bytes of unused buffers.
    pub fn new(retained_bytes_max: usize) -> Self {
        let shared = Shared { free: Mutex::default(), retained_bytes_max };
        Self { shared: Arc::new(shared) }
    }

    /// A buffer holding a copy of `bytes`.
    pub fn copy_from(&self, bytes: &[u8]) -> Arc<Buffer> {
        self.fill(bytes.len(), |target| target.copy_from_slice(bytes))
    }

    /// A buffer of `len` bytes written by `write`, which must write all of them: what it is given
    /// may hold an earlier owner's bytes.
    pub fn fill(&self, len: usize, write: impl FnOnce(&mut [u8])) -> Arc<Buffer> {
        let mut lines = self.shared.take(len);
        write(&mut bytemuck::cast_slice_mut(&mut lines)[..len]);
        Arc::new(Buffer(Memory::Pooled { lines, len, pool: self.shared.clone() }))
    }

    /// The bytes of `owner`: themselves, kept alive, where they are aligned to `alignment` bytes, else a
    /// copy.
    pub fn adopt(
        &self,
        owner: impl AsRef<[u8]> + Send + Sync + 'static,
        alignment: usize,
    ) -> Arc<Buffer> {
        let bytes = owner.as_ref();
        if bytes.as_ptr() as usize % alignment.max(1) == 0 {
            return Arc::new(Buffer(Memory::Adopted(Box::new(owner))));
        }
        self.copy_from(bytes)
    }

    /// Like [`fill`](Self::fill), for a writer that can fail.
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

impl Shared {
    fn take(&self, len: usize) -> Lines {
        let class = class_of(len);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lines) = free.classes.get_mut(class).and_then(Vec::pop) {
            free.retained_bytes -= lines.len() * ALIGNMENT;
            return lines;
        }
        drop(free);
        vec![Line([0; ALIGNMENT]); SMALLEST_CLASS_LINES << class].into_boxed_slice()
    }

    fn give_back(&self, lines: Lines) {
        let bytes = lines.len() * ALIGNMENT;
        let class = class_of(bytes);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.retained_bytes + bytes > self.retained_bytes_max {
            return;
        }
        if free.classes.len() <= class {
            free.classes.resize_with(class + 1, Vec::new);
        }
        free.retained_bytes += bytes;
        free.classes[class].push(lines);
    }
}

/// The smallest class whose buffers hold `len` bytes.
fn class_of(len: usize) -> usize {
    let lines = len.div_ceil(ALIGNMENT).max(SMALLEST_CLASS_LINES);
    (lines.next_power_of_two() / SMALLEST_CLASS_LINES).trailing_zeros() as usize
}

/// Immutable bytes. Those from a pool are aligned to 64 and return to it when dropped; adopted ones are
/// aligned as was asked for.
pub struct Buffer(Memory);

enum Memory {
    Pooled { lines: Lines, len: usize, pool: Arc<Shared> },
    Adopted(Box<dyn AsRef<[u8]> + Send + Sync>),
}

impl Buffer {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Memory::Pooled { lines, len, .. } => &bytemuck::cast_slice(lines)[..*len],
            Memory::Adopted(owner) => (**owner).as_ref(),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Memory::Pooled { lines, pool, .. } = &mut self.0 {
            pool.give_back(std::mem::take(lines));
        }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.as_bytes().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_hold_what_was_written() {
        let pool = BufferPool::new(1 << 20);
        for len in [0, 1, 63, 64, 4096, 4097, 600_000] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let buffer = pool.copy_from(&bytes);
            assert_eq!(buffer.as_bytes(), bytes);
            assert_eq!(buffer.as_bytes().as_ptr() as usize % ALIGNMENT, 0);
        }
    }

    #[test]
    fn adopted_bytes_stay_where_they_are_unless_misaligned() {
        let pool = BufferPool::new(1 << 20);
        let bytes: Vec<u64> = vec![7; 100];
        let address = bytes.as_ptr() as usize;
        struct From(Vec<u64>, usize);
        impl AsRef<[u8]> for From {
            fn as_ref(&self) -> &[u8] {
                &bytemuck::cast_slice(&self.0)[self.1..]
            }
        }
        let aligned = pool.adopt(From(bytes.clone(), 8), 8);
        let misaligned = pool.adopt(From(bytes.clone(), 1), 8);
        let own = pool.adopt(From(bytes, 0), 8);
        assert_eq!(own.as_bytes().as_ptr() as usize, address);
        assert_eq!(aligned.as_bytes().len(), 792);
        assert_eq!(misaligned.as_bytes().as_ptr() as usize % ALIGNMENT, 0);
        assert_eq!(misaligned.as_bytes().len(), 799);
    }

    #[test]
    fn a_dropped_buffer_is_used_again_but_the_pool_stays_bounded() {
        let pool = BufferPool::new(8192);
        let first = pool.copy_from(&[1; 5000]);
        let address = first.as_bytes().as_ptr();
        drop(first);
        let second = pool.copy_from(&[2; 6000]);
        assert_eq!(second.as_bytes().as_ptr(), address);
        drop((second, pool.copy_from(&[3; 5000]), pool.copy_from(&[4; 100_000])));
        assert!(pool.shared.free.lock().unwrap().retained_bytes <= 8192);
    }
}
