//! Blocks of memory: a pool's own, or those of a [`MemorySource`] (pinned memory of a device, for
//! example).
//!
//! Blocks come in size classes, powers of two from 4 KiB on. All of them are aligned to
//! [`ALIGNMENT`].

/// Alignment of every buffer, in bytes: a cache line. ONNX Runtime's kernels are fastest with it.
pub(crate) const ALIGNMENT: usize = 64;

/// The smallest size class, in lines: 4 KiB.
const SMALLEST_CLASS_LINES: usize = 64;

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; ALIGNMENT]);

pub(crate) type Lines = Box<[Line]>;

/// A source of memory for a pool, in place of the allocator.
pub trait MemorySource: Send + Sync {
    /// A block of exactly `len` bytes, aligned to 64. If the source has none, the pool takes
    /// ordinary memory.
    fn allocate(&self, len: usize) -> Option<Box<dyn MemoryBlock>>;
}

/// A block of memory that a [`MemorySource`] gave.
pub trait MemoryBlock: AsRef<[u8]> + AsMut<[u8]> + Send + Sync {}

impl<T: AsRef<[u8]> + AsMut<[u8]> + Send + Sync> MemoryBlock for T {}

/// Memory of the pool itself, or of its source.
pub(crate) enum Block {
    Own(Lines),
    Sourced(Box<dyn MemoryBlock>),
}

impl Block {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(lines) => bytemuck::cast_slice(lines),
            Self::Sourced(block) => (**block).as_ref(),
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Own(lines) => bytemuck::cast_slice_mut(lines),
            Self::Sourced(block) => (**block).as_mut(),
        }
    }

    pub(crate) fn is_aligned_of(&self, len: usize) -> bool {
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
pub(crate) fn class_of(len: usize) -> usize {
    let lines = len.div_ceil(ALIGNMENT).max(SMALLEST_CLASS_LINES);
    (lines.next_power_of_two() / SMALLEST_CLASS_LINES).trailing_zeros() as usize
}

/// The bytes of a block of this class.
pub(crate) fn bytes_of(class: usize) -> usize {
    (SMALLEST_CLASS_LINES << class) * ALIGNMENT
}
