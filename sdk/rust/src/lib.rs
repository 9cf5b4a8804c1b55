//! Write [Gristmill](../../README.md) plugins in Rust: pre- and postprocessing that runs sandboxed
//! around a model.
//!
//! A plugin is a library crate (`crate-type = ["cdylib"]`) with one impl and one macro line:
//!
//! ```
//! use gristmill_plugin::{Context, Failure, Outputs, Prepared, Processor, Request, Response,
//! Tensor};
//!
//! struct Doubler;
//!
//! impl Processor for Doubler {
//!     fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
//!         let values: Vec<f32> = request.json()?;
//!         let input = Tensor::from_slice(&[values.len(), 1], &values)?;
//!         Ok(Prepared::new().input("input", input))
//!     }
//!
//!     fn postprocess(
//!         _context: &Context,
//!         outputs: Outputs,
//!         _state: Vec<u8>,
//!     ) -> Result<Response, Failure> {
//!         let scores = outputs.view::<f32>("output", &[None, Some(1)])?;
//!         Response::json(scores.as_slice())
//!     }
//! }
//!
//! gristmill_plugin::export_processor!(Doubler);
//! # fn main() {}
//! ```
//!
//! `gristmill plugin build` makes a component of it, `gristmill plugin push` uploads it. Unless its
//! pipeline reuses instances, each call runs in a fresh one: statics have the values that [`Init`]
//! left, or their initial ones, and only the returned value outlives the call.
//!
//! # What a plugin sees
//!
//! | | preprocess | postprocess |
//! |---|---|---|
//! | the context: settings ([`Context::settings_as`]), names, the time left | yes | yes |
//! | the request: body, parts, headers, query | yes | no |
//! | the model's outputs | no | yes, this request's rows |
//! | the state that preprocess returned | | yes |
//!
//! If postprocess needs to know something of the request, preprocess puts it into the state, which
//! is bytes. JSON is the simple way:
//!
//! ```no_run
//! # use gristmill_plugin::{Context, Failure, Outputs, Prepared, Request, Response, Tensor};
//! #[derive(serde::Deserialize)]
//! struct Settings {
//!     threshold: f32,
//! }
//!
//! fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
//!     let (ids, scores): (Vec<String>, Vec<f32>) = request.json()?;
//!     let input = Tensor::from_slice(&[scores.len(), 1], &scores)?;
//!     Ok(Prepared::new().input("input", input).state(serde_json::to_vec(&ids)?))
//! }
//!
//! fn postprocess(context: &Context, outputs: Outputs, state: Vec<u8>) -> Result<Response, Failure>
//! {
//!     let Settings { threshold } = context.settings_as()?;
//!     let ids: Vec<String> = serde_json::from_slice(&state)?;
//!     let scores = outputs.view::<f32>("output", &[Some(ids.len()), Some(1)])?;
//!     let pairs = ids.iter().zip(scores.as_slice());
//!     let over = pairs.filter(|(_, score)| **score > threshold);
//!     let found: Vec<_> = over.map(|(id, _)| id).collect();
//!     Response::json(&found)
//! }
//! ```
//!
//! # Handlers
//!
//! A [`Handler`] takes the place of both calls: it gets the request, runs models itself with
//! [`models::infer`] and [`models::infer_all`], and returns the response. Write one if a request
//! needs several models, one after another or side by side, or one model several times. Otherwise
//! write the two calls: no instance waits while the model runs.
//!
//! ```
//! use gristmill_plugin::models::{self, Run};
//! use gristmill_plugin::{Context, HandleError, Handler, Request, Response, Tensor};
//!
//! /// Two models vote.
//! struct Vote;
//!
//! impl Handler for Vote {
//!     fn handle(_context: &Context, request: &Request) -> Result<Response, HandleError> {
//!         let values: Vec<f32> = request.json()?;
//!         let input = Tensor::from_slice(&[values.len(), 1], &values)?;
//!         let runs = ["forest", "network"].map(|model| Run::new(model).input("input", &input));
//!         let mut sums = vec![0.0_f32; values.len()];
//!         for outputs in models::infer_all(&runs) {
//!             let scores = outputs?.view::<f32>("output", &[Some(values.len()), Some(1)])?;
//!             sums.iter_mut().zip(scores.as_slice()).for_each(|(sum, score)| *sum += *score);
//!         }
//!         Ok(Response::json(&sums)?)
//!     }
//! }
//!
//! gristmill_plugin::export_handler!(Vote);
//! # fn main() {}
//! ```
//!
//! `?` returns an error of a model as it is, and the client gets what it would get from a pipeline
//! without a handler. A handler that can do without a model matches on the [`InferError`].
//!
//! # Stores and tables
//!
//! [`store`] has values by key, in stores that the operator binds, such as Redis: one call gathers
//! the features of all items as a tensor.
//!
//! [`tables`] has rows of numbers by key, in files among the assets.
//! # Other services
//!
//! The module `http` sends requests to services that the tenant's document grants, with the feature
//! `http`.
//!
//! # Texts
//!
//! [`tokenizer`] makes the ids of texts on the host, by a `tokenizer.json` among the assets.
//!
//! # Failures
//!
//! `?` turns errors into a [`Failure`], and in a handler into a [`HandleError`] with that failure.
//! What the client can cause is the client's fault (400): JSON that does not fit, text that is not
//! a number or not UTF-8, a damaged picture. The rest is the plugin's own fault (500, with the text
//! in the log only): a tensor of the wrong length, a number that does not fit another type, I/O.
//! For anything else there are [`Failure::invalid_input`], [`Failure::unsupported_media_type`],
//! [`Failure::unprocessable`] and [`Failure::internal`].
//!
//! # Tests
//!
//! The SDK's calls work under `cargo test` on your machine: see [`testing`].
//!
//! # The operating system
//!
//! | | `wasm32-unknown-unknown` | `wasm32-wasip2` |
//! |---|---|---|
//! | `println!`, `eprintln!`, `dbg!` | **vanish** | lines of the server's log |
//! | `Instant::now()`, `SystemTime::now()`, `thread::sleep` | panic | work |
//! | random numbers (of `getrandom`, and so of `rand`, `uuid`, ..) | work | work |
//! | files, environment variables, sockets | errors or absent | errors or absent |
//! | `thread::spawn` | an error | an error |
//!
//! `gristmill plugin build` builds for `wasm32-unknown-unknown`: such plugins are smaller and start
//! faster. `cargo build` by hand for this target needs the cfgs that `random.rs` names if a
//! dependency draws random numbers. The macros of [`log`] work in both. A panic fails this one
//! request: its client gets 500 `plugin_trapped` without the message. The `export_*` macros install
//! a panic hook, so that the server's log has the message with file and line: `panicked at
//! src/lib.rs:12:24: order 42 is bad`. A plugin may set another hook.

mod allocator;
pub mod assets;
#[cfg(target_arch = "wasm32")]
mod bindings;
mod export;
mod failure;
#[cfg(feature = "http")]
pub mod http;
pub mod image;
pub mod json;
pub mod keep;
pub mod log;
pub mod models;
pub mod numpy;
mod panic;
mod prepared;
mod random;
#[cfg(not(target_arch = "wasm32"))]
mod reference;
mod request;
mod response;
pub mod store;
pub mod tables;
mod tensor;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod tokenizer;

#[cfg(not(target_arch = "wasm32"))]
use reference as bindings;

pub use bindings::models::{HandleError, InferError};
pub use bindings::prepare::Prepared;
pub use bindings::tensors::{Dtype, NamedTensor, Scored, Tensor, TensorError};
pub use bindings::types::{
    Blob, BlobError, Context, Failure, Field, JsonError, Part, Request, Response,
};
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub use bindings::worlds;
pub use export::{Handler, Init, Postprocessor, Preprocessor, Processor};
pub use tensor::{Element, Outputs, View};
