//! The free blocks of a pool: taken when a buffer begins, given back when its last reader drops it.
//!
//! A fresh 600 KB allocation costs a mmap and 150 page faults, several times the arithmetic done on
//! it, so blocks are kept for the next buffer of their size, up to a limit, and until they have
//! been spare for a while ([`FreeBlocks::trim`]). Debug builds overwrite a block that comes back
//! ([`POISON`]), so that tests find bytes of an earlier owner.

use parking_lot::Mutex;

use crate::block::{ALIGNMENT, Block, MemorySource, bytes_of, class_of};

/// Debug builds fill a buffer with repetitions of these bytes when it comes back to its pool.
pub const POISON: [u8; 8] = *b"\xa5poison\xa5";

/// The free blocks of a pool, shared with its buffers.
pub(crate) struct FreeBlocks {
    pub(crate) lists: Mutex<FreeLists>,
    retained_bytes_max: usize,
    source: Option<Box<dyn MemorySource>>,
}

#[derive(Default)]
pub(crate) struct FreeLists {
    /// One list for each size class.
    pub(crate) classes: Vec<Vec<Block>>,
    /// The fewest free blocks of each class since the last trim.
    spare: Vec<usize>,
    pub(crate) retained_bytes: usize,
}

/// A block that was taken for a buffer.
pub(crate) struct Taken {
    pub(crate) block: Block,
    /// Whether it is fresh from the allocator, all zeros.
    pub(crate) is_zero: bool,
}

impl FreeBlocks {
    /// No blocks yet. At most `retained_bytes_max` bytes of them are kept, new ones come from
    /// `source`.
    pub(crate) fn new(source: Option<Box<dyn MemorySource>>, retained_bytes_max: usize) -> Self {
        Self { lists: Mutex::default(), retained_bytes_max, source }
    }

    pub(crate) fn is_sourced(&self) -> bool {
        self.source.is_some()
    }

    /// A block of at least `len` bytes. It may hold an earlier owner's bytes.
    pub(crate) fn take(&self, len: usize) -> Taken {
        let class = class_of(len);
        let mut free = self.lists.lock();
        if let Some(block) = free.pop(class) {
            return Taken { block, is_zero: false };
        }
        drop(free);
        let bytes = bytes_of(class);
        let sourced = self.source.as_ref().and_then(|source| source.allocate(bytes));
        match sourced.map(Block::Sourced) {
            Some(block) if block.is_aligned_of(bytes) => Taken { block, is_zero: false },
            // Fresh pages from the system cost nothing until they are written.
            _ => {
                let block = Block::Own(bytemuck::zeroed_slice_box(bytes / ALIGNMENT));
                Taken { block, is_zero: true }
            }
        }
    }

    /// Keep a block for the next buffer of its size. Over the limit, evict from the size class that
    /// holds the most bytes.
    pub(crate) fn give_back(&self, mut block: Block) {
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
        // Dropped after the lock is released: unmapping takes long.
        let mut dropped = Vec::new();
        let mut free = self.lists.lock();
        if free.classes.len() <= class {
            free.classes.resize_with(class + 1, Vec::new);
            free.spare.resize(class + 1, 0);
        }
        while free.retained_bytes + bytes > self.retained_bytes_max {
            let kept = free.classes.iter().enumerate();
            let most = kept.max_by_key(|(class, blocks)| blocks.len() * bytes_of(*class));
            let Some((most, _)) = most.filter(|(most, _)| *most != class) else { return };
            let Some(evicted) = free.pop(most) else { return };
            dropped.push(evicted);
        }
        free.retained_bytes += bytes;
        free.classes[class].push(block);
    }

    /// Free the blocks that no buffer has used since the last trim.
    pub(crate) fn trim(&self) {
        // Dropped after the lock is released: unmapping takes long.
        let mut dropped = Vec::new();
        let mut free = self.lists.lock();
        let FreeLists { classes, spare, retained_bytes } = &mut *free;
        for (class, (blocks, spare)) in classes.iter_mut().zip(spare).enumerate() {
            *retained_bytes -= *spare * bytes_of(class);
            dropped.extend(blocks.drain(..*spare));
            *spare = blocks.len();
        }
    }
}

impl FreeLists {
    fn pop(&mut self, class: usize) -> Option<Block> {
        let block = self.classes.get_mut(class)?.pop()?;
        self.retained_bytes -= bytes_of(class);
        self.spare[class] = self.spare[class].min(self.classes[class].len());
        Some(block)
    }
}
