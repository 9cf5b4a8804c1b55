//! Tokenizing of texts, as a `tokenizer.json` of Hugging Face's tokenizers describes it.
//!
//! The algorithms are those of the crate `tokenizers`, which trusts its file. Here the file belongs
//! to a tenant and the texts to clients, so this crate reads the file itself, checks each part
//! before the library gets it, and runs the steps one by one: between them it asks whether the work
//! may go on ([`Work::check`]), and it says how much memory it takes before it takes it
//! ([`Work::reserve`]). Refuses to know wasmtime, budgets and tenants.
//!
//! Invariants:
//! - a text's normalized form is at most four times as long, and 4 KiB more;
//! - no step of a file makes the next one run longer than the bounds in `limits` allow;
//! - the library's caches are off, because one of them keeps its texts for ever; words are kept
//!   within bounds, for each tokenizer (`words`);
//! - a panic of the library is an error of its file or its text.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod decode;
mod error;
mod expression;
mod file;
mod guard;
mod limits;
mod model;
mod normalize;
mod options;
mod postprocess;
mod split;
mod steps;
mod tokenizer;
mod words;
mod work;

pub use error::{Stopped, TextError};
pub use guard::is_tokenizing;
pub use limits::{FILE_BYTES_MAX, TEXT_BYTES_MAX};
pub use options::{EncodeOptions, Encoded, OffsetUnit, Side};
pub use tokenizer::Tokenizer;
pub use work::{Check, Work};
