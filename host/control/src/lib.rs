//! The control plane: validate, append, load, publish.
//!
//! [`Control`] is what admin handlers call. A change is tried on a copy of the desired state, the
//! plugins and models it brings are loaded, and only when all of that went well is it appended to
//! the release log and the new snapshot published. Start-up replays the log through the same code,
//! so there is one way for state to appear. Refuses to know HTTP.
//!
//! In reading order: `release` is what the log holds, `desired` what replaying it adds up to,
//! `loader` turns digests into loaded plugins and lanes, `build` turns the desired state into a
//! snapshot.
//!
//! Invariants:
//! - what was acknowledged is in the log, and the log replayed gives the same desired state;
//! - a change that cannot be loaded is refused and changes nothing;
//! - what fails to load at start-up is unavailable and says why; everything else serves.

#![forbid(unsafe_code)]

mod build;
mod control;
mod desired;
mod error;
mod loader;
mod model_config;
mod progress;
mod release;

pub use control::{Control, ControlParts, Published};
pub use desired::{Desired, Model, Tenant};
pub use error::ControlError;
pub use model_config::{
    GraphOptimizationSpec, ModelConfig, ProviderName, QueuePolicySpec, TimeoutActionSpec,
};
pub use progress::Progress;
pub use release::{Change, LimitsSpec, PipelineSpec, Release, TenantSpec};
