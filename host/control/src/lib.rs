//! The control plane: plan, load, append, publish.
//!
//! [`Control`] is what admin handlers call. A change is planned on a copy of the desired state (the
//! crate `gristmill-state`), and the plugins, assets and models that it brings are loaded. Only if
//! all of that succeeds, it is appended to the release log and the new snapshot is published.
//! Start-up replays the log through the same code, so there is only one way to build a state.
//! Refuses to know HTTP and the way of a request: a [`SampleRunner`] runs the requests of samples.
//!
//! The steps, in the order in which a change takes them:
//!
//! 1. a `change_request` plans the next state;
//! 2. `load` loads the plugins, assets and models that the next state names;
//! 3. `snapshot_builder` turns the state and what is loaded into a snapshot, and `samples` runs the
//!    golden samples of the pipelines that differ from those that serve;
//! 4. `release_log` appends the release, reads those of others, and removes old ones behind a
//!    `checkpoint`;
//! 5. `publish` serves the snapshot.
//!
//! `admin_api` is the way in; `releases` takes these steps under a lock. `uploads` keeps the files,
//! `blobs` those that no release names yet, and `accounts` the quotas and counters of tenants from
//! snapshot to snapshot. `asset_limits` bounds the files that plugins open. `history` has the
//! documents of releases. `turns` lets each author of changes load one change at a time, `pace`
//! bounds how many releases it makes, `signatures` finds who signed a plugin, and `hash_key` checks
//! the secret of hashes. An `error` is the reason why a change was not made. `check_store` reads a
//! store without changing it, also beside a server.
//!
//! Several servers may share a store. The `follower` of each serves the releases of the others, and
//! `replicas` has what they tell one another.
//!
//! Invariants:
//! - an acknowledged change is in the log, and replaying the log gives the same desired state;
//! - a log that was changed, or has a gap, is refused as a whole;
//! - a change that cannot be loaded, or that fails a sample, is refused and changes nothing;
//! - a part that fails to load at start-up is unavailable, with the reason; everything else serves.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod accounts;
mod admin_api;
mod asset_limits;
mod blob_error;
mod blob_holder;
mod blob_room;
mod blobs;
mod candidates;
mod change_request;
mod check_store;
mod checkpoint;
mod error;
mod follower;
mod hash_key;
mod history;
mod load;
mod pace;
mod publish;
mod release_log;
mod releases;
mod replicas;
mod samples;
mod signatures;
mod snapshot_builder;
mod task;
#[cfg(test)]
mod testing;
mod turns;
mod uploads;

pub use accounts::FigureParts;
pub use admin_api::figures::ControlFigures;
pub use admin_api::history::{NewRelease, Rollback};
pub use admin_api::models::{NewModel, PublishedModel};
pub use admin_api::{Control, ControlParts};
pub use asset_limits::AssetLimits;
pub use blob_error::BlobError;
pub use blob_holder::Holder;
pub use blobs::{ArrivingPart, BeginPart, BlobState, Blobs};
pub use check_store::{Finding, StoreCheck, check_store};
pub use error::ControlError;
pub use gristmill_sandbox::JobStatus;
pub use gristmill_snapshot::{Mismatch, Mismatches};
pub use gristmill_store::{Incoming, Outgoing, Received};
pub use hash_key::HashKeyError;
pub use history::{ReleaseHeading, ReleaseSummary};
pub use load::error::LoadError;
pub use load::progress::Progress;
pub use load::prove::{PROVE_JOB, ProverConfig, prove_model};
pub use pace::TooManyReleases;
pub use release_log::end_error::{LogEndError, LogEndFault};
pub use release_log::gaps::LogGap;
pub use releases::step::Published;
pub use replicas::{Following, KnownReplica, Replica, Trouble, Waited};
pub use samples::failed::FailedSamples;
pub use samples::shown::ShownSample;
pub use samples::{SampleRun, SampleRunner};
pub use task::joined;
