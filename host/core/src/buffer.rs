//! Memory for tensors: pooled and aligned, or somebody else's, kept alive.
//!
//! A fresh 600 KB allocation costs a mmap and 150 page faults, several times the arithmetic done on
//! it, so buffers go back to a free list when their last reader lets go. What lies in memory already,
//! a request's body or a runtime's output, is taken as it is.
//!
//! Invariant: nobody sees bytes of an earlier owner, whatever the writer does. A [`BufferMut`] shows only what was
//! written into it since it was taken from the pool, code of others (a decoder, a socket, a runtime) is handed
//! zeroed bytes only, and freezing zeroes what is left. In debug builds a buffer that comes back is poisoned, so
//! that tests find leftovers.

use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;

/// Alignment of every buffer, in bytes: a cache line, and what ONNX Runtime's kernels like best.
const ALIGNMENT: usize = 64;

/// Debug builds fill a buffer that comes back to its pool with repetitions of this.
pub const POISON: [u8; 8] = *b"\xa5poison\xa5";

/// The smallest size class, in lines: 4 KiB.
const SMALLEST_CLASS_LINES: usize = 64;

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

type Lines = Box<[Line]>;

/// Where a pool has its memory from, if not from the allocator.
pub trait MemorySource: Send + Sync {
    /// A block of exactly `len` bytes, aligned to 64; none where there is none to be had: the pool then
    /// takes ordinary memory.
    fn allocate(&self, len: usize) -> Option<Box<dyn MemoryBlock>>;
}

/// A block of memory that a [`MemorySource`] gave.
pub trait MemoryBlock: AsRef<[u8]> + AsMut<[u8]> + Send + Sync {}

impl<T: AsRef<[u8]> + AsMut<[u8]> + Send + Sync> MemoryBlock for T {}

/// A pool's own memory, or its source's.
enum Block {
    Own(Lines),
    Sourced(Box<dyn MemoryBlock>),
}

/// A pool of tensor buffers; clones share it.
#[derive(Clone)]
pub struct BufferPool {
    shared: Arc<Shared>,
}

struct Shared {
    free: Mutex<FreeLists>,
    retained_bytes_max: usize,
    source: Option<Box<dyn MemorySource>>,
}

#[derive(Default)]
struct FreeLists {
    /// One list per power of two of [`SMALLEST_CLASS_LINES`].
    classes: Vec<Vec<Block>>,
    retained_bytes: usize,
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
        let shared = Shared { free: Mutex::default(), retained_bytes_max, source };
        Self { shared: Arc::new(shared) }
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

    /// A buffer of `len` zeros, for code of others to write to.
    pub fn zeroed(&self, len: usize) -> BufferMut {
        let mut buffer = self.begin(len);
        buffer.append_zeros(len);
        buffer
    }

    /// A buffer for `len` bytes that is written from its beginning to its end.
    pub fn begin(&self, len: usize) -> BufferMut {
        let Taken { block, is_zero } = self.shared.take(len);
        let clean = if is_zero { len } else { 0 };
        BufferMut { block, len, written: 0, clean, lent: 0, pool: self.shared.clone() }
    }

    /// The bytes of memory that a buffer of `len` bytes takes.
    pub fn bytes_taken(len: usize) -> usize {
        bytes_of(class_of(len))
    }

    /// The bytes of `owner`: themselves, kept alive, where they are aligned to `alignment` bytes, else a
    /// copy.
    pub fn adopt(
        &self,
        owner: impl AsRef<[u8]> + Send + Sync + 'static,
        alignment: usize,
    ) -> Arc<Buffer> {
        let bytes = owner.as_ref();
        if bytes.is_empty() || (bytes.as_ptr() as usize).is_multiple_of(alignment.max(1)) {
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

/// A block that was taken for a buffer.
struct Taken {
    block: Block,
    /// Whether it is fresh from the allocator, all zeros.
    is_zero: bool,
}

impl Shared {
    fn take(&self, len: usize) -> Taken {
        let class = class_of(len);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = free.classes.get_mut(class).and_then(Vec::pop) {
            free.retained_bytes -= block.bytes().len();
            return Taken { block, is_zero: false };
        }
        drop(free);
        let bytes = bytes_of(class);
        let sourced = self.source.as_ref().and_then(|source| source.allocate(bytes));
        match sourced.map(Block::Sourced) {
            Some(block) if block.is_aligned_of(bytes) => Taken { block, is_zero: false },
            // Of what is fresh from the system, pages that nobody writes cost nothing.
            _ => {
                let block = Block::Own(bytemuck::zeroed_slice_box(bytes / ALIGNMENT));
                Taken { block, is_zero: true }
            }
        }
    }

    /// Keep a block for the next one who asks for its size. Where too much is kept, the size that most is kept
    /// of makes room.
    fn give_back(&self, mut block: Block) {
        let bytes = block.bytes().len();
        let class = class_of(bytes);
        if bytes > self.retained_bytes_max {
            return;
        }
        if cfg!(debug_assertions) {
            block
                .bytes_mut()
                .chunks_exact_mut(POISON.len())
                .for_each(|b| b.copy_from_slice(&POISON));
        }
        // Unmapped only when others may have the lock again.
        let mut dropped = Vec::new();
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.classes.len() <= class {
            free.classes.resize_with(class + 1, Vec::new);
        }
        while free.retained_bytes + bytes > self.retained_bytes_max {
            let kept = free.classes.iter().enumerate();
            let most = kept.max_by_key(|(class, blocks)| blocks.len() * bytes_of(*class));
            let Some((most, _)) = most.filter(|(most, _)| *most != class) else { return };
            let Some(evicted) = free.classes[most].pop() else { return };
            free.retained_bytes -= bytes_of(most);
            dropped.push(evicted);
        }
        free.retained_bytes += bytes;
        free.classes[class].push(block);
    }
}

impl Block {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(lines) => bytemuck::cast_slice(lines),
            Self::Sourced(block) => (**block).as_ref(),
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Own(lines) => bytemuck::cast_slice_mut(lines),
            Self::Sourced(block) => (**block).as_mut(),
        }
    }

    fn is_aligned_of(&self, len: usize) -> bool {
        let bytes = self.bytes();
        bytes.len() == len && (bytes.as_ptr() as usize).is_multiple_of(ALIGNMENT)
    }
}

impl Default for Block {
    fn default() -> Self {
        Self::Own(Lines::default())
    }
}

/// The smallest class whose buffers hold `len` bytes.
fn class_of(len: usize) -> usize {
    let lines = len.div_ceil(ALIGNMENT).max(SMALLEST_CLASS_LINES);
    (lines.next_power_of_two() / SMALLEST_CLASS_LINES).trailing_zeros() as usize
}

/// The bytes of a block of this class.
fn bytes_of(class: usize) -> usize {
    (SMALLEST_CLASS_LINES << class) * ALIGNMENT
}

/// A pooled buffer while it is written, from its beginning to its end.
///
/// Its memory may hold an earlier owner's bytes. It shows and lends only bytes that were written since it was taken,
/// by us or as zeros.
pub struct BufferMut {
    block: Block,
    len: usize,
    /// The bytes up to here were written since the block was taken.
    written: usize,
    /// The bytes from `written` up to here are not an earlier owner's: zeros, or written by a borrower.
    clean: usize,
    /// The bytes from `written` up to here were lent.
    lent: usize,
    pool: Arc<Shared>,
}

impl BufferMut {
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

    /// Write `len` zeros after the bytes written before, as far as there is room, and show them to be overwritten.
    pub fn append_zeros(&mut self, len: usize) -> &mut [u8] {
        let start = self.written;
        let end = start + len.min(self.room());
        let lent = self.lent.clamp(start, end);
        self.block.bytes_mut()[start..lent].fill(0);
        self.clean(end);
        self.written = end;
        &mut self.block.bytes_mut()[start..end]
    }

    /// The next bytes to be written, at most `len`: zeros, or what was written to bytes lent before. A reader of a socket
    /// writes there and says with [`advance`](Self::advance) how much of it belongs to the buffer.
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

    /// The buffer, from now on immutable. What was not written is zero.
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
        self.pool.give_back(std::mem::take(&mut self.block));
    }
}

/// Immutable bytes. Those from a pool are aligned to 64 and return to it when dropped; adopted ones are
/// aligned as was asked for.
pub struct Buffer(Memory);

enum Memory {
    Pooled(BufferMut),
    Adopted(Box<dyn AsRef<[u8]> + Send + Sync>),
}

impl Buffer {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Memory::Pooled(buffer) => buffer.as_ref(),
            Memory::Adopted(owner) => (**owner).as_ref(),
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
    use std::sync::atomic::{AtomicUsize, Ordering};

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
    fn a_buffer_that_is_given_up_while_it_is_written_returns_too() {
        let pool = BufferPool::new(1 << 20);
        let mut begun = pool.begin(5000);
        begun.append(&[7; 10]);
        let address = begun.as_mut().as_ptr();
        drop(begun);
        let again = pool.copy_from(&[2; 6000]);
        assert_eq!(again.as_bytes().as_ptr(), address);
        assert_eq!(again.as_bytes(), [2; 6000]);
    }

    /// A pool whose next buffer of that size was another's, and the bytes of that one.
    fn used(len: usize) -> (BufferPool, Vec<u8>) {
        let pool = BufferPool::new(1 << 20);
        let secret: Vec<u8> = (0..len).map(|i| (i % 251) as u8 | 1).collect();
        drop(pool.copy_from(&secret));
        // As a build without debug assertions leaves it.
        for block in pool.shared.free.lock().unwrap().classes.iter_mut().flatten() {
            assert!(block.bytes().starts_with(&POISON));
            block.bytes_mut()[..len].copy_from_slice(&secret);
        }
        (pool, secret)
    }

    #[test]
    fn an_earlier_owners_bytes_are_seen_by_nobody() {
        let len = 5000;
        let (pool, _) = used(len);
        assert_eq!(pool.fill(len, |_| ()).as_bytes(), vec![0; len]);
        let (pool, _) = used(len);
        let mut part = pool.begin(len);
        part.append(&[9; 100]);
        assert_eq!((part.as_ref().len(), part.as_mut().len(), part.room()), (100, 100, 4900));
        let part = part.freeze();
        assert_eq!(part.as_bytes()[..100], [9; 100]);
        assert_eq!(part.as_bytes()[100..], vec![0; 4900]);
    }

    #[test]
    fn what_is_lent_is_clean_and_counts_as_far_as_it_is_advanced() {
        let (pool, _) = used(5000);
        let mut buffer = pool.begin(5000);
        buffer.append(&[1; 3]);
        assert_eq!(buffer.lend(1000), vec![0; 1000]);
        buffer.lend(1000)[..600].fill(2);
        buffer.advance(500);
        assert_eq!(buffer.as_ref().len(), 503);
        // 100 bytes that the borrower wrote and did not count are its own.
        assert_eq!(buffer.lend(2000)[..100], [2; 100]);
        assert_eq!(buffer.lend(2000)[100..], vec![0; 1900]);
        assert_eq!(buffer.append_zeros(1000), vec![0; 1000]);
        let frozen = buffer.freeze();
        assert_eq!(frozen.as_bytes()[503..], vec![0; 5000 - 503]);
    }

    #[test]
    fn values_are_written_one_after_the_other_whatever_their_alignment() {
        let (pool, _) = used(100);
        for odd in [0, 1] {
            let mut buffer = pool.begin(odd + 12);
            buffer.append(&vec![7; odd]);
            buffer.extend([1.0_f32, 2.0]);
            buffer.extend((3..9).map(f32::from as fn(u8) -> f32).take(1));
            let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
            assert_eq!(buffer.freeze().as_bytes()[odd..], bytes);
        }
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

    #[test]
    fn a_pool_full_of_one_size_keeps_others_all_the_same() {
        let pool = BufferPool::new(256 << 10);
        let large: Vec<_> = (0..4).map(|_| pool.begin(64 << 10)).collect();
        drop(large);
        let small = pool.copy_from(&[1; 5000]);
        let address = small.as_bytes().as_ptr();
        drop(small);
        assert_eq!(pool.copy_from(&[2; 5000]).as_bytes().as_ptr(), address);
        assert!(pool.shared.free.lock().unwrap().retained_bytes <= 256 << 10);
        // What is larger than all that may be kept displaces nothing.
        drop(pool.begin(300 << 10));
        assert_eq!(pool.copy_from(&[3; 5000]).as_bytes().as_ptr(), address);
    }

    /// Gives two blocks of the right length, then one of another.
    struct Two(AtomicUsize);

    impl MemorySource for Two {
        fn allocate(&self, len: usize) -> Option<Box<dyn MemoryBlock>> {
            let given = self.0.fetch_add(1, Ordering::Relaxed);
            let lines = if given < 2 { len / ALIGNMENT } else { 1 };
            Some(Box::new(Given(vec![Line([0; ALIGNMENT]); lines])))
        }
    }

    struct Given(Vec<Line>);

    impl AsRef<[u8]> for Given {
        fn as_ref(&self) -> &[u8] {
            bytemuck::cast_slice(&self.0)
        }
    }

    impl AsMut<[u8]> for Given {
        fn as_mut(&mut self) -> &mut [u8] {
            bytemuck::cast_slice_mut(&mut self.0)
        }
    }

    #[test]
    fn a_sources_memory_is_used_and_used_again_and_replaced_where_it_does_not_fit() {
        let pool = BufferPool::of(Two(AtomicUsize::new(0)), 1 << 20);
        let is_sourced = |buffer: &Buffer| {
            matches!(&buffer.0, Memory::Pooled(BufferMut { block: Block::Sourced(_), .. }))
        };
        let (first, second) = (pool.copy_from(&[1; 5000]), pool.copy_from(&[2; 100]));
        assert!(is_sourced(&first) && is_sourced(&second));
        assert_eq!(first.as_bytes(), [1; 5000]);
        let address = first.as_bytes().as_ptr();
        drop(first);
        let again = pool.copy_from(&[3; 6000]);
        assert_eq!(again.as_bytes().as_ptr(), address);
        let third = pool.copy_from(&[4; 5000]);
        assert!(!is_sourced(&third));
        assert_eq!(third.as_bytes(), [4; 5000]);
    }
}
