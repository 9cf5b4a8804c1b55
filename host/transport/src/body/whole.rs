//! The memory into which the reads of a body are copied.

use bytes::{Bytes, BytesMut};
use gristmill_core::{BufferMut, BufferPool, PromisedBytes};

use super::plan::ReadPlan;

/// Maximum memory that is reserved for the rest of a body before it comes.
const RESERVED_BYTES_MAX: usize = 8 << 20;

/// A body of known length and at least this many bytes is collected in a pooled buffer.
pub(crate) const POOLED_BYTES_MIN: usize = 64 << 10;

/// The alignment of tensors in a collected body.
const ALIGNMENT: usize = 64;

/// A body that is being collected, with its tensors aligned.
pub(super) enum Whole {
    /// A large body of known length, in a pooled buffer for which the tenant's budget has room.
    Pooled { buffer: BufferMut, padding: usize, _promised: PromisedBytes },
    /// Any other body, in memory that grows as bytes come.
    Growing(Aligned),
}

impl Whole {
    /// Memory for a body whose first `first` bytes have come. `expected` is its length, if that is
    /// known. The length of a chunked body is not: it never goes into a buffer of fixed length.
    pub(super) fn begin(plan: &ReadPlan<'_>, expected: Option<usize>, first: usize) -> Self {
        let padding = plan.aligned_at.wrapping_neg() % ALIGNMENT;
        let large = expected.filter(|expected| *expected >= POOLED_BYTES_MIN);
        if let (Some(expected), Some(budget)) = (large, plan.budget) {
            let len = padding + expected;
            if let Some(promised) = budget.promise(BufferPool::bytes_taken(len)) {
                let mut buffer = plan.pool.begin(len);
                buffer.append_zeros(padding);
                return Self::Pooled { buffer, padding, _promised: promised };
            }
        }
        let reserved = expected.unwrap_or(first).clamp(first, RESERVED_BYTES_MAX.max(first));
        Self::Growing(Aligned::new(plan.aligned_at, reserved))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Pooled { buffer, padding, .. } => buffer.as_ref().len() - padding,
            Self::Growing(aligned) => aligned.len(),
        }
    }

    /// Append `chunk`. If growing memory has no room for it, it grows to `capacity` bytes. Returns
    /// false if a buffer of fixed length has no room.
    #[must_use]
    pub(super) fn push(&mut self, chunk: &[u8], capacity: usize) -> bool {
        match self {
            Self::Pooled { buffer, .. } => {
                let fits = chunk.len() <= buffer.room();
                if fits {
                    buffer.append(chunk);
                }
                fits
            }
            Self::Growing(aligned) => {
                aligned.push(chunk, capacity);
                true
            }
        }
    }

    pub(super) fn freeze(self) -> Bytes {
        match self {
            Self::Pooled { buffer, padding, .. } => Bytes::from_owner(buffer).slice(padding..),
            Self::Growing(aligned) => aligned.freeze(),
        }
    }
}

/// A body in growing memory.
pub(super) struct Aligned {
    bytes: BytesMut,
    /// Unused bytes before the body's.
    padding: usize,
    /// The offset in the body of the byte that is aligned.
    aligned_at: usize,
}

impl Aligned {
    fn new(aligned_at: usize, capacity: usize) -> Self {
        let mut bytes = BytesMut::with_capacity(capacity + ALIGNMENT);
        let padding = (bytes.as_ptr() as usize).wrapping_add(aligned_at).wrapping_neg() % ALIGNMENT;
        bytes.resize(padding, 0);
        Self { bytes, padding, aligned_at }
    }

    fn len(&self) -> usize {
        self.bytes.len() - self.padding
    }

    /// Append `chunk`. If there is no room for it, make room for `capacity` bytes in total.
    fn push(&mut self, chunk: &[u8], capacity: usize) {
        if self.bytes.capacity() - self.bytes.len() < chunk.len() {
            let mut larger = Self::new(self.aligned_at, capacity);
            larger.bytes.extend_from_slice(&self.bytes[self.padding..]);
            *self = larger;
        }
        self.bytes.extend_from_slice(chunk);
    }

    fn freeze(self) -> Bytes {
        self.bytes.freeze().slice(self.padding..)
    }
}
