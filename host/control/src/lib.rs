//! The control plane: validate, append, load, publish.
//!
//! [`Control`] is what admin handlers call. A change is tried on a copy of the desired state, the
//! plugins and models it brings are loaded, and only when all of that went well is it appended to
//! the release log and the new snapshot published. Start-up replays the log through the same code,
//! so there is one way for state to appear. Refuses to know HTTP.
//!
//! In reading order: `release` is what the log holds, `log` how it is written there, `log_end` how its
//! end is remembered, `desired` what replaying it adds up to, `document` how people's documents are
//! read, `change` makes releases, `plan` turns what was asked into the changes of one, `uploads` keeps
//! the files, `loader` turns digests into loaded plugins and `models` into lanes, after `prove` has had
//! a child load the model, `at_hand` holds both for a change, `build` turns the desired state into a
//! snapshot, `fault` says what of it is not served, `fit` whether a pipeline fits what it names, `signature`
//! whether a model still fits those who use it.
//!
//! Invariants:
//! - what was acknowledged is in the log, and the log replayed gives the same desired state;
//! - a log that was changed, or has a gap, is refused as a whole;
//! - a change that cannot be loaded is refused and changes nothing;
//! - what fails to load at start-up is unavailable and says why; everything else serves.

#![forbid(unsafe_code)]

mod at_hand;
mod build;
mod change;
mod control;
mod desired;
mod document;
mod error;
mod fault;
mod fit;
mod loader;
mod log;
mod log_end;
mod model_config;
mod models;
mod plan;
mod progress;
mod prove;
mod put_model;
mod release;
mod signature;
mod uploads;

pub use control::{Control, ControlParts, Published};
pub use desired::{Desired, Model, Tenant};
pub use document::{Document, Faults};
pub use error::ControlError;
pub use fault::{Fault, Subject};
pub use gristmill_sandbox::JobStatus;
pub use gristmill_store::{Incoming, Received};
pub use model_config::{
    GraphOptimizationSpec, ModelConfig, ProviderName, QueuePolicySpec, TimeoutActionSpec,
};
pub use progress::Progress;
pub use prove::{PROVE_JOB, ProverConfig, prove_model};
pub use put_model::PublishedModel;
pub use release::{
    Change, LimitRange, LimitsSpec, PipelineSpec, Release, TenantSpec, limit_ranges,
};
