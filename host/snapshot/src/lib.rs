//! The immutable picture of everything that serves, and the cell that holds the current one.
//!
//! The control plane builds a [`Snapshot`] and publishes it; the data plane takes it from the
//! [`SnapshotCell`], once for each request. The two planes meet only here. Refuses to know how a
//! snapshot is built.
//!
//! Invariants:
//! - a snapshot never changes: a change makes a new one, which shares the tenants that it did not
//!   touch;
//! - a request holds an owned `Arc` of one snapshot from its first look-up to its answer, never an
//!   ArcSwap guard, so everything that it uses stays loaded until it is done.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod access;
mod capture;
mod cell;
mod cors;
mod evaluation;
mod in_flight;
mod mismatch;
mod model;
mod picture;
mod quota;
mod route;
mod signature;
mod tenant;
mod versions;

pub use access::{Access, is_no_key, same_key};
pub use capture::{Capture, Captured, CapturedAnswer, Capturing};
pub use cell::SnapshotCell;
pub use cors::Cors;
pub use evaluation::{
    AbortBounds, Comparison, Difference, Evaluation, EvaluationReport, Observed, ShadowTally,
    VariantTally,
};
pub use gristmill_backend::{Certificate, Certified, PaddingProof, ProviderHealth, Sizing};
pub use in_flight::{HeldRows, RowsInFlight, TooManyRows};
pub use mismatch::{Mismatch, Mismatches};
pub use model::{Format, ModelState, ServedModel, TensorNotes};
pub use picture::{Operator, Snapshot};
pub use quota::{QuotaLimits, TenantQuota};
pub use route::{Candidate, Handler, HandlerModel, Pair, Pipeline, Program, Route, Takes};
pub use signature::{BodyInput, Inputs, MemberInput, NamedOutput, Signature, row_dims};
pub use tenant::{AssetState, Direct, FileState, PluginState, Tenant};
pub use versions::{KeptVersion, loaded_versions};
