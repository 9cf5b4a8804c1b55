//! The words every other crate speaks: ids, tensors, the [`Model`] trait, limits, deadlines and
//! error codes.
//!
//! Refuses to know I/O, async runtimes and the formats of any edge (JSON, WIT, protobuf).
//!
//! Invariant: a [`Tensor`] that exists is whole: its bytes are exactly as long as its dtype and
//! shape ask for, and its buffer never changes again.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod budget;
mod buffer;
mod deadline;
mod dtype;
mod error;
mod id;
mod limits;
mod model;
mod tensor;

pub use budget::{ByteBudget, HeldBytes, OverBudget, PromisedBytes};
pub use buffer::{Buffer, BufferMut, BufferPool, MemoryBlock, MemorySource, POISON};
pub use deadline::Deadline;
pub use dtype::{Dtype, InvalidDtype};
pub use error::ErrorCode;
pub use id::{Digest, InvalidDigest, InvalidName, Name};
pub use limits::{PipelineLimits, PluginLimits};
pub use model::{
    InputError, Interrupt, Model, ModelError, ModelInfo, NamedTensor, TensorInfo, run_guarded,
};
pub use tensor::{Shape, Tensor, TensorError};
