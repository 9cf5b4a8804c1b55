//! The sandbox: loading, limiting and calling plugins. The only crate that names wasmtime.
//!
//! A plugin is a component of one of the worlds in `wit/`. Each call has an instance with a store
//! and limits of its own. It is a fresh one, unless the pipeline lets instances serve several calls
//! ([`Reuse`]). Refuses to know tenants, HTTP and models.
//!
//! In reading order: [`Sandbox`] turns an uploaded file into a [`Plugin`]: `check_component` checks
//! the file and says what is wrong with it, `compile` compiles it in a child process, where `init`
//! runs too, `artifact` keeps the code on disk. `asset_sections` has the files that a plugin
//! brings, and `assets` those that a call may read. A [`PluginPair`] has the plugins of a pipeline,
//! a [`HandlerPlugin`] the one of a pipeline with a handler, and `idle` the instances that stay.
//! `engine` runs the calls: `worlds` knows how each export is called, `guest` is a store with its
//! instance, which `rewind` makes fresh again, `call` is the state of one call, `capability` has
//! one module for each interface that a plugin may import, `limiter` and `meter` count memory and
//! CPU time, [`Account`] has the permits and the memory that the calls of one owner share, which a
//! handler that waits gives back (`pause`), `long_calls` decides on which threads a call
//! runs, `diagnose` says why it gave no answer, `lines` keeps the last lines that plugins logged.
//!
//! Invariants:
//! - the epoch deadline is set before instantiation, because start functions run there;
//! - compiled code is loaded only from files that this host wrote and has verified;
//! - neither a server nor the command line parses uploaded bytes: their children do, and answer
//!   with plain data;
//! - a guest's misbehaviour is a [`CallError`], never a panic and never an error of another call.

#![deny(missing_docs)]

mod account;
mod artifact;
mod asset_sections;
mod assets;
mod call;
mod capability;
mod check_component;
mod check_job;
mod compile;
mod config;
mod count;
mod diagnose;
mod encode;
mod engine;
mod error;
mod frames;
mod grant;
mod guest;
mod handler;
mod host_work;
mod idle;
mod init;
mod kept;
mod language;
mod limiter;
mod lines;
mod load_error;
mod long_calls;
mod mapped;
mod meter;
mod model_runs;
mod neighbours;
mod outgoing;
mod pace;
mod pair;
mod pause;
mod plugin;
mod queue;
mod request;
mod rewind;
mod runtime;
mod sandbox;
mod sections;
mod sources;
mod stores;
mod took;
mod worlds;

pub use account::{Account, BACKGROUND_CALLS_PER_CORE};
pub use asset_sections::{add_assets, check_assets};
pub use assets::{ASSETS_MAX, Asset, Assets, asset_name_fault};
pub use capability::json::pointer::{POINTER_NAMES_MAX, Pointers};
pub use capability::types::base64::{bytes_max as base64_bytes_max, decode as decode_base64};
pub use check_component::{CheckedComponent, check_component};
pub use check_job::{CHECK_JOB, check, check_in_child};
pub use compile::{COMPILE_JOB, Compiler, child_limits, compile};
pub use config::SandboxConfig;
pub use count::Needs;
pub use engine::Instances;
pub use error::{AnswerFault, CallError, CallLimit, Failure, HostFault, TooBusy};
pub use grant::{Grant, GrantedSystems};
pub use gristmill_platform::child::JobStatus;
pub use handler::HandlerPlugin;
pub use idle::TenantReuse;
pub use language::Language;
pub use lines::{AllLines, KEPT_LINES_MAX, KeptLines, Line, LineSource, Lines, OwnLines};
pub use load_error::{ComponentError, LoadError};
pub use model_runs::{
    AskedModel, AskedRuns, ModelCall, ModelRuns, RunCount, RunFault, RunFaultKind, RunOutcome,
    RunOutputs, WantedRun,
};
pub use neighbours::Neighbours;
pub use outgoing::{
    NoOutgoing, OUTGOING_AT_ONCE, OUTGOING_BODY_BYTES_MAX, OUTGOING_BUFFER_BYTES, OutgoingBody,
    OutgoingCall, OutgoingFault, OutgoingHttp, Sending, TenantOutgoing, Timeouts,
};
pub use pair::{KeptInstance, PluginPair, Reuse};
pub use plugin::Plugin;
pub use request::{Context, FormPart, Prepared, Request, Response, Results};
pub use runtime::{Archive, ArchiveError, Manifest, RuntimeStatus, RuntimeVersion, is_archive};
pub use sandbox::Sandbox;
pub use sources::{add_sources, sources_of};
pub use stores::{
    Cleared, KeyPage, NoStores, STORE_KEY_BYTES_MAX, STORE_KIB, STORE_PAGE_KEYS,
    STORE_VALUE_BYTES_MAX, StoreAccess, StoreCall, StoreFault, StoreFaultKind, Stores, Swap,
    Swapped, TenantStores, WantedValues, incremented,
};
pub use worlds::Roles;
