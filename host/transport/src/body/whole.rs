//! The memory in which a body is collected from several reads.

use bytes::{Bytes, BytesMut};
use gristmill_core::{BufferMut, BufferPool, PromisedBytes};

use super::plan::ReadPlan;

/// The most memory that is reserved for a body before any of it has come.
const RESERVED_BYTES_MAX: usize = 8 << 20;

/// A body of known length and at least this many bytes is collected in a pooled buffer.
pub(crate) const POOLED_BYTES_MIN: usize = 64 << 10;

/// The alignment of tensors in a collected body.
const ALIGNMENT: usize = 64;

/// A body that is being collected, with its tensors aligned.
pub(super) enum Whole {
    /// A large body of known length, in a pooled buffer that the tenant's budget promised.
    Pooled { buffer: BufferMut, padding: usize, _promised: PromisedBytes },
    /// Any other body, in memory that grows with the bytes that come.
    Growing(Aligned),
}

impl Whole {
    pub(super) fn begin(plan: &ReadPlan<'_>, expected: usize) -> Self {
        let padding = plan.aligned_at.wrapping_neg() % ALIGNMENT;
        let len = padding + expected;
        let budget = plan.budget.filter(|_| expected >= POOLED_BYTES_MIN);
        match budget.and_then(|budget| budget.promise(BufferPool::bytes_taken(len))) {
            Some(promised) => {
                let mut buffer = plan.pool.begin(len);
                buffer.append_zeros(padding);
                Self::Pooled { buffer, padding, _promised: promised }
            }
            None => Self::Growing(Aligned::new(plan.aligned_at, expected.min(RESERVED_BYTES_MAX))),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Pooled { buffer, padding, .. } => buffer.as_ref().len() - padding,
            Self::Growing(aligned) => aligned.len(),
        }
    }

    /// Append `chunk`. If there is no room for it, make room for `capacity` bytes in total.
    pub(super) fn push(&mut self, chunk: &[u8], capacity: usize) {
        match self {
            // hyper passes on no more than the Content-Length.
            Self::Pooled { buffer, .. } => buffer.append(chunk),
            Self::Growing(aligned) => aligned.push(chunk, capacity),
        }
    }

    pub(super) fn freeze(self) -> Bytes {
        match self {
            Self::Pooled { buffer, padding, .. } => Bytes::from_owner(buffer).slice(padding..),
            Self::Growing(aligned) => aligned.freeze(),
        }
    }
}

/// A body in growing memory. One byte of it, at a given offset, is aligned.
pub(super) struct Aligned {
    bytes: BytesMut,
    /// Bytes before the body's own.
    padding: usize,
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
