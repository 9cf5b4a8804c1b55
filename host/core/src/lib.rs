//! The types that every other crate uses: names, digests, tensors, the [`Model`] trait, limits,
//! deadlines and error codes.
//!
//! Refuses to know I/O, async runtimes and the formats of any edge (JSON, WIT, protobuf). Only
//! `not_json` knows a format: it says why a text is not JSON.
//!
//! Invariant: a [`Tensor`] that exists is whole: its bytes are exactly as long as its dtype and
//! shape ask for, and its buffer never changes again.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod batch_record;
mod block;
mod budget;
mod buffer;
mod charge;
mod code;
mod deadline;
mod destination;
mod digest;
mod dtype;
mod error;
mod free_blocks;
mod host_time;
mod key_hash;
mod likeness;
mod limits;
mod model;
mod name;
mod named;
mod not_json;
mod origin;
mod padding;
mod pool;
mod rate;
mod receipt;
mod requests;
mod serde_as_text;
mod shards;
mod slowest;
mod span;
mod stages;
mod tensor;
mod texts;
mod turn;

pub use batch_record::{BatchFigures, BatchRecord, BatchSink, Follow, SpanRef};
pub use block::{MemoryBlock, MemorySource};
pub use budget::{ByteBudget, HeldBytes, OverBudget, PromisedBytes};
pub use buffer::{Buffer, BufferMut};
pub use charge::{Charge, Late, LateSink, ModelUse};
pub use code::{Code, Function, Functions};
pub use deadline::Deadline;
pub use destination::{AddressRange, Destination, HostPattern, InvalidHost, InvalidRange, Scheme};
pub use digest::{Digest, InvalidDigest};
pub use dtype::Dtype;
pub use error::{ClientError, DocumentFault, ErrorCode};
pub use free_blocks::POISON;
pub use host_time::{HostTime, charged_elsewhere};
pub use key_hash::{HashKeyId, InvalidKeyHash, KeyHash, KeyHashes};
pub use likeness::Likeness;
pub use limits::{PipelineLimits, PluginLimits};
pub use model::inputs::{ExpectedRows, InputError, rows_of};
pub use model::{
    EqualDims, Interrupt, Model, ModelError, ModelErrorKind, ModelInfo, NamedTensor, TensorInfo,
    run_guarded, run_guarded_with,
};
pub use name::{InvalidName, Name};
pub use named::{Named, SinkNames};
pub use not_json::{NotJson, json_token};
pub use origin::{InvalidOrigin, OriginFault, Origins};
pub use padding::{
    BUCKETS_MAX, CutOutput, CutSpec, Element, LENGTHS_MAX, Lengths, PadSpec, PadValue, PaddedInput,
    PaddedLength, Padding, PaddingFault, PaddingSpec,
};
pub use pool::BufferPool;
pub use rate::{Exhausted, Rate, RateLimit, Remaining};
pub use receipt::{Outcome, Receipt, Record, Sink, Subject};
pub use requests::{Progress, Requests, Tracked, Underway};
pub use shards::Shards;
pub use slowest::{SlowRequest, Slowest};
pub use span::{CallUsage, ModelRun, PluginCall, Span, Step};
pub use stages::{Stage, Stages};
pub use tensor::lengths::Fill;
pub use tensor::{ElementError, Shape, Tensor, TensorError};
pub use texts::{CutShort, TEXT_LENGTH_BYTES, Texts, push_text};
pub use turn::Turn;
