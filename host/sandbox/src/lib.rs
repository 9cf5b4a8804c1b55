//! The sandbox: loading, limiting and calling plugins. The only crate that names wasmtime.
//!
//! A plugin is a component of one of the worlds in `wit/`. Each call gets a fresh instance from the
//! pool, its own store, its own limits; the instance is gone when the call returns, so nothing that
//! one request left behind can be seen by the next. Refuses to know tenants, HTTP and models.
//!
//! In reading order: [`Sandbox`] owns the engine, the ticker and the pool's permits; `admit` turns an
//! uploaded file into a component and says what is wrong with it; `compile` compiles it, in a child
//! process; `artifact` keeps the compiled code on disk; [`Plugin`] is a loaded component; `long_calls`
//! decides on which threads a call runs; `call` is the state of one call, `meter` its CPU time,
//! [`Account`] what the calls of one owner share; `capability` is what a plugin may ask of the host.
//!
//! Invariants:
//! - the epoch deadline is set before instantiation, because start functions run there;
//! - compiled code is only ever loaded from files that this host wrote itself, and verified;
//! - a server parses no uploaded bytes: its children do, and answer with plain data;
//! - a guest's misbehaviour is a [`CallError`], never a panic and never an error of another call.

mod account;
mod admit;
mod artifact;
mod bindings;
mod call;
mod capability;
mod compile;
mod count;
mod engine;
mod error;
mod long_calls;
mod meter;
mod plugin;

pub use account::Account;
pub use admit::{Admitted, admit};
pub use compile::{COMPILE_JOB, Compiler, compile};
pub use engine::{Sandbox, SandboxConfig};
pub use error::{AdmitError, CallError, Failure, LoadError};
pub use gristmill_child::JobStatus;
pub use plugin::{Grant, Part, Plugin, Prepared, Request, Response, Roles};
