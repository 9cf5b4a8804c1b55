//! Loading and running models: on ONNX Runtime if its library is found, else, or if it cannot run
//! the model, on tract. The only crate that names `ort` or tract.
//!
//! Refuses to know batching, tenants and files other than the ONNX Runtime library and a model's
//! own: a model comes in as a [`ModelFile`] and goes out as [`Model`](gristmill_core::Model)
//! instances.
//!
//! In reading order: `options` say how a model is loaded, `library` finds ONNX Runtime, `package`
//! has the parts of a model of several files, `source` and `open_rows` make its file ready
//! (`onnx`), `inspect` reads it; [`Backends`] loads it on each provider, `onnxruntime` or `tract`,
//! and `warm_up` runs it a first time, on inputs of `probe`; `fallback` runs each batch on the best
//! provider that works, `breaker` says which may be tried. `prove` does the same in a child
//! process. There it also finds out whether rows may share batches: `rows` follows them through the
//! graph, and `trial` runs made-up ones, also padded if the configuration says that they may be. A
//! `certificate` is the outcome.
//!
//! Invariant: an `ort` value is never cloned, and never bound as an input, because binding may
//! clone it. In 2.0.0-rc.15 a clone deadlocks in `ort`'s identity session.

#![deny(unsafe_code)]
#![deny(missing_docs)]

mod backends;
mod beliefs;
mod breaker;
mod certificate;
mod element_type;
mod error;
mod fallback;
mod health;
mod inspect;
mod library;
mod loaded;
mod memory;
mod names;
mod onnx;
mod onnxruntime;
mod open_rows;
mod options;
pub mod package;
mod probe;
mod prove;
mod rows;
mod run_within;
mod sizing;
mod source;
mod tract;
mod trial;
mod warm_up;

pub use backends::Backends;
pub use certificate::{Certificate, Certified, PaddingProof, RowProof};
pub use error::{LibraryError, LibraryFault, LoadError, NotOnnx, ProviderError, ProviderFailure};
pub use health::ProviderHealth;
pub use library::{LibrarySearch, installed_library, is_safe_library, library_in};
pub use loaded::LoadedModel;
pub use options::{Batching, GraphOptimization, LoadOptions, ProviderKind, TRIAL_TIME};
pub use prove::Proven;
pub use sizing::{BATCH_SIZE_MAX, FixedSizes, SIZING_TIME, Sizing};
pub use source::{ModelFile, archive_of};

#[cfg(test)]
mod tests;
