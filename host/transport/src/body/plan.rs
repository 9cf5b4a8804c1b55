//! How a body is read.

use std::sync::Arc;

use gristmill_core::{BufferPool, ByteBudget, Deadline};

/// Bounds on reading a body, and the memory for it.
#[derive(Clone, Copy)]
pub struct ReadPlan<'a> {
    /// Maximum bytes of the body.
    pub bytes: usize,
    /// The time until which the body must have arrived.
    pub deadline: Deadline,
    /// The budget that the bytes count against until the body is dropped.
    pub budget: Option<&'a Arc<ByteBudget>>,
    /// The offset in the body at which its tensors begin. The byte there is aligned in memory.
    pub aligned_at: usize,
    /// The memory for a large body of known length.
    pub pool: &'a BufferPool,
}
