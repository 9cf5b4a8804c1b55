//! Blocks of memory: a pool's own, or those of a [`MemorySource`] (pinned memory of a device, for
//! example).
//!
//! Blocks come in size classes: powers of two from 4 KiB on, and from 32 MiB on eight steps to each
//! power of two, so that a large image takes about as much as it has. All of them are aligned to
//! [`ALIGNMENT`].

/// Alignment of every buffer, in bytes: a cache line. ONNX Runtime's kernels are fastest with it.
pub(crate) const ALIGNMENT: usize = 64;

/// The smallest size class, in lines: 4 KiB.
const SMALLEST_CLASS_LINES: usize = 64;

/// The class from which on each power of two has [`STEPS`] classes, and its size in lines.
const FINE_CLASS: usize = 13;
const FINE_CLASS_LINES: usize = SMALLEST_CLASS_LINES << FINE_CLASS;
const STEPS: usize = 8;

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
    if lines <= FINE_CLASS_LINES {
        return (lines.next_power_of_two() / SMALLEST_CLASS_LINES).trailing_zeros() as usize;
    }
    let power = (lines - 1).ilog2();
    let steps = (lines - (1 << power)).div_ceil((1 << power) / STEPS);
    FINE_CLASS + (power - FINE_CLASS_LINES.ilog2()) as usize * STEPS + steps
}

/// The bytes of a block of this class.
pub(crate) fn bytes_of(class: usize) -> usize {
    let steps = class.saturating_sub(FINE_CLASS);
    let power = SMALLEST_CLASS_LINES << (class.min(FINE_CLASS) + steps / STEPS);
    (power + power / STEPS * (steps % STEPS)) * ALIGNMENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_what_it_is_chosen_for_and_little_more() {
        for power in 12..40 {
            let around = [1, 2, 3, 5, 8].map(|part| (1 << power) + (1 << power) / 8 * part);
            for len in around.into_iter().flat_map(|len| [len - 1, len, len + 1]) {
                let bytes = bytes_of(class_of(len));
                let most = if len > 32 << 20 { len + len / 8 + ALIGNMENT } else { 2 * len };
                assert!((len..=most).contains(&bytes), "{len}: {bytes}");
                assert_eq!(class_of(bytes), class_of(len), "{len}");
            }
        }
    }
}
