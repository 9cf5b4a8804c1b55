//! The host's part of the contract, for targets other than WebAssembly: the same items as the
//! generated `bindings`, over plain values of this process.
//!
//! It is for tests of plugins: see [`testing`](crate::testing). It has no limits, no budgets and no
//! deadline. Its numbers equal the host's, and its texts say the same.
#![allow(missing_docs)]

pub mod arrays;
pub mod assets;
mod base64;
#[cfg(feature = "http")]
pub(crate) mod http;
pub mod image;
pub mod json;
pub mod keep;
pub mod log;
pub mod models;
pub mod prepare;
pub mod store;
pub mod tables;
pub mod tensors;
pub mod tokenizer;
pub mod types;
