//! The control plane: plan, load, append, publish.
//!
//! [`Control`] is what admin handlers call. A change is planned on a copy of the desired state, and
//! the plugins and models that it brings are loaded. Only if all of that succeeds, it is appended
//! to the release log and the new snapshot is published. Start-up replays the log through the same
//! code, so there is only one way to build a state. Refuses to know HTTP and the way of a request:
//! a [`SampleRunner`] runs the requests of samples.
//!
//! The steps, in the order in which a change takes them:
//!
//! 1. `release` defines the content of the log and the documents that people write; `desired` is
//!    the resulting state;
//! 2. `plan` turns the changes that are `asked` for into those of a release, and the state into the
//!    next one;
//! 3. `load` loads the plugins and models that the next state names;
//! 4. `snapshot_builder` turns the state and what is loaded into a snapshot, and `samples` runs the
//!    golden samples of the pipelines that differ from those that serve;
//! 5. `release_log` appends the release, reads those of others, and removes old ones behind a
//!    `checkpoint`;
//! 6. `publish` serves the snapshot.
//!
//! `admin_api` is the way in; a `change_request` has the changes and their `terms`, such as its
//! `conditions`; `releases` takes these steps under a lock. `uploads` keeps the files, `blobs`
//! those that no release names yet, and `accounts` the quotas and counters of tenants from snapshot
//! to snapshot. `current` has the documents and the tags of what serves, `description` the types of
//! some of them, `schema` parts of the schemas of documents, `difference` what a release changes,
//! and `history` the documents of releases. `reach` is the part of the server that the author of a
//! change may see and change, `turns` lets each such author load one change at a time, `pace`
//! bounds how many releases it makes, and `hash_key` checks the secret of hashes. A `fault` is a
//! part of a state that is not served, an `error` the reason why a change was not made.
//! `check_store` reads a store without changing it, also beside a server.
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
mod asked;
mod blob_error;
mod blob_holder;
mod blob_room;
mod blobs;
mod candidates;
mod change_request;
mod check_store;
mod checkpoint;
mod conditions;
mod current;
mod description;
mod desired;
mod difference;
mod error;
mod fault;
mod follower;
mod hash_key;
mod history;
mod in_use;
mod key_conflict;
mod last_keys;
mod load;
mod pace;
mod plan;
mod publish;
mod reach;
mod release;
mod release_log;
mod releases;
mod replicas;
mod samples;
mod schema;
mod snapshot_builder;
mod task;
mod terms;
#[cfg(test)]
mod testing;
mod too_many_versions;
mod turns;
mod uploads;

pub use accounts::FigureParts;
pub use admin_api::figures::ControlFigures;
pub use admin_api::history::{NewRelease, Rollback};
pub use admin_api::models::{NewModel, PublishedModel};
pub use admin_api::{Control, ControlParts};
pub use asked::AskedChange;
pub use blob_error::BlobError;
pub use blob_holder::Holder;
pub use blobs::{BeginPart, BlobState, Blobs, Part};
pub use check_store::{Finding, StoreCheck, check_store};
pub use conditions::{Conditions, Tag, Tags, Unmet};
pub use current::Current;
pub use description::{KeyDescription, ModelDescription, PluginDescription};
pub use desired::{Desired, Model, Plugin, Tenant, Token};
pub use difference::Difference;
pub use error::ControlError;
pub use fault::{Fault, Subject};
pub use gristmill_sandbox::JobStatus;
pub use gristmill_snapshot::{Mismatch, Mismatches};
pub use gristmill_store::{Incoming, Outgoing, Received, digest_of};
pub use hash_key::HashKeyError;
pub use history::{ReleaseHeading, ReleaseSummary};
pub use in_use::{InUse, PipelineOf, Uses};
pub use key_conflict::KeyConflict;
pub use load::error::LoadError;
pub use load::progress::Progress;
pub use load::prove::{PROVE_JOB, ProverConfig, prove_model};
pub use pace::TooManyReleases;
pub use plan::restore::Scope;
pub use publish::Serving;
pub use reach::Reach;
pub use release::candidate::{AbortSpec, CandidateSpec};
pub use release::capture::CaptureSpec;
pub use release::change::{Change, Release, ReleaseNote};
pub use release::document::{Document, Faults};
pub use release::expectation::Expectation;
pub use release::gaps::LogGap;
pub use release::limits::{LimitRange, LimitsSpec, limit_ranges};
pub use release::log_error::{LogEndError, LogEndFault, LogError};
pub use release::model_config::{
    FormatSpec, GraphOptimizationSpec, InputSpec, LabelFiles, Labels, ModelConfig, OutputSpec,
    ProviderName, QueuePolicySpec, TimeoutActionSpec,
};
pub use release::named_version::{InvalidNamedVersion, NamedVersion};
pub use release::pipeline::PipelineSpec;
pub use release::quota::QuotaSpec;
pub use release::sample::{Sample, SampleRequest};
pub use release::tenant::{BatchWith, GivenKey, KEYS_MAX, SentKey, TenantDocument, TenantSpec};
pub use release::token::{ROOT, Role, TOKENS_MAX, TokenDocument, TokenSpec, rfc3339};
pub use release::version_policy::{MODEL_VERSIONS_MAX, PLUGIN_VERSIONS_MAX, VersionPolicy};
pub use releases::step::Published;
pub use replicas::{Following, KnownReplica, Replica, Trouble, Waited};
pub use samples::failed::FailedSamples;
pub use samples::{SampleAnswer, SampleFailure, SampleRun, SampleRunner};
pub use schema::{
    DigestText, ErrorCodeText, ModelNameText, NameText, NamedModelText, NamedVersionText,
    add as add_schema,
};
pub use task::joined;
pub use terms::{Terms, TokenUse};
pub use too_many_versions::TooManyVersions;
