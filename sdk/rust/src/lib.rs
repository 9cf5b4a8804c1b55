//! Write [Gristmill](../../README.md) plugins in Rust: pre- and postprocessing that runs sandboxed
//! around a model.
//!
//! A plugin is a library crate (`crate-type = ["cdylib"]`) with one impl and one macro line:
//!
//! ```
//! use gristmill_plugin::{Failure, Outputs, Prepared, Processor, Request, Response, Tensor};
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
//!     fn postprocess(context: &Context, outputs: Outputs, _state: Vec<u8>) -> Result<Response, Failure> {
//!         let scores = outputs.view::<f32>("output", &[None, Some(1)])?;
//!         Response::json(scores.as_slice())
//!     }
//! }
//!
//! gristmill_plugin::export_processor!(Doubler);
//! # fn main() {}
//! ```
//!
//! `gristmill plugin build` makes a component of it, `gristmill plugin push` uploads it. Each call
//! runs in a fresh instance: statics have their initial values, and only the returned value
//! outlives the call.
//!
//! # What a plugin sees
//!
//! | | preprocess | postprocess |
//! |---|---|---|
//! | the request: body, parts, headers, query | yes | no |
//! | the pipeline's settings ([`Request::settings_as`]) | yes | no |
//! | the model's outputs | no | yes, this request's rows |
//! | the state that preprocess returned | | yes |
//!
//! If postprocess needs to know something of the request or the settings, preprocess puts it into
//! the state, which is bytes. JSON is the simple way:
//!
//! ```no_run
//! # use gristmill_plugin::{Failure, Outputs, Prepared, Request, Response, Tensor};
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Settings {
//!     threshold: f32,
//! }
//!
//! fn preprocess(context: &Context, request: &Request) -> Result<Prepared, Failure> {
//!     let settings: Settings = request.settings_as()?;
//!     let input = Tensor::from_slice(&[1, 1], &request.json::<[f32; 1]>()?)?;
//!     Ok(Prepared::new().input("input", input).state(serde_json::to_vec(&settings)?))
//! }
//!
//! fn postprocess(context: &Context, outputs: Outputs, state: Vec<u8>) -> Result<Response, Failure> {
//!     let settings: Settings = serde_json::from_slice(&state)?;
//!     let scores = outputs.view::<f32>("output", &[None, Some(1)])?;
//!     Response::json(&scores.as_slice().iter().any(|score| *score > settings.threshold))
//! }
//! ```
//!
//! # Functions without effect, and functions that panic
//!
//! A plugin has its request, its tensors and its log, but no operating system:
//!
//! - `println!`, `eprintln!` and `dbg!` compile and **vanish**: write with [`log::write`] instead.
//!   The lines are in the server's log, with the tenant, the pipeline, the plugin and the request.
//! - `Instant::now()`, `SystemTime::now()`, `thread::spawn` and `thread::sleep` panic. Files,
//!   environment variables and sockets are errors or absent.
//! - A panic fails this one request: its client gets 500 `plugin_trapped` without the message. The
//!   `export_*` macros install a panic hook, so that the server's log has the message with file and
//!   line: `panicked at src/lib.rs:12:24: order 42 is bad`. A plugin may set another hook.
//! - SDK calls work in the sandbox only. Under `cargo test` on your machine they abort the test.
//!   Put code that you want to test into functions over plain values.

mod allocator;
mod bindings;
mod failure;
pub mod image;
pub mod log;
mod panic;
mod prepared;
mod request;
mod response;
mod tensor;

pub use bindings::prepare::Prepared;
pub use bindings::tensors::{Dtype, NamedTensor, Scored, Tensor, TensorError};
pub use bindings::types::{Blob, Context, Failure, Field, Part, Request, Response};
#[doc(hidden)]
pub use bindings::worlds;
pub use tensor::{Element, Outputs, View};

/// A plugin that turns a request into a model's inputs. Export it with [`export_preprocessor!`].
pub trait Preprocessor {
    /// Returns one tensor for each of the model's inputs, and the state for the postprocessor of
    /// the same request. Dimension 0 of a tensor is rows.
    fn preprocess(context: &Context, request: &Request) -> Result<Prepared, Failure>;
}

/// A plugin that turns a model's outputs into a response. Export it with [`export_postprocessor!`].
pub trait Postprocessor {
    /// Returns the response. `outputs` has this request's rows of every output, and `state` comes
    /// from the preprocessor.
    fn postprocess(context: &Context, outputs: Outputs, state: Vec<u8>) -> Result<Response, Failure>;
}

/// Both in one plugin. Export it with [`export_processor!`].
pub trait Processor {
    /// As in [`Preprocessor`].
    fn preprocess(context: &Context, request: &Request) -> Result<Prepared, Failure>;

    /// As in [`Postprocessor`]. Runs in another instance than `preprocess` did.
    fn postprocess(context: &Context, outputs: Outputs, state: Vec<u8>) -> Result<Response, Failure>;
}

/// Work that is done once, when the plugin is uploaded: a vocabulary that is parsed into a static,
/// for example. Export it with the argument `init` of the export macros:
/// `export_processor!(Tagger, init)`.
pub trait Init {
    /// Every instance begins with the memory that this call leaves.
    ///
    /// It can only write to the log: there is no clock, no random number, no tensor and no picture.
    ///
    /// # Errors
    /// A text with which the upload is refused.
    fn init() -> Result<(), String>;
}

/// Export a type that implements [`Preprocessor`].
///
/// ```
/// use gristmill_plugin::{Failure, Prepared, Preprocessor, Request, Tensor};
///
/// struct Pre;
///
/// impl Preprocessor for Pre {
///     fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
///         let values: Vec<f32> = request.json()?;
///         Ok(Prepared::new().input("input", Tensor::from_slice(&[1, values.len()], &values)?))
///     }
/// }
///
/// gristmill_plugin::export_preprocessor!(Pre);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export_preprocessor {
    ($plugin:ident) => {
        $crate::worlds::preprocessor::export_preprocessor_world!(
            $plugin with_types_in $crate::worlds::preprocessor
        );
    };
    ($plugin:ident, init) => {
        $crate::export_preprocessor!($plugin);
        $crate::worlds::initializer::export_initializer_world!(
            $plugin with_types_in $crate::worlds::initializer
        );
    };
}

/// Export a type that implements [`Postprocessor`].
///
/// ```
/// use gristmill_plugin::{Failure, Outputs, Postprocessor, Response};
///
/// struct Post;
///
/// impl Postprocessor for Post {
///     fn postprocess(context: &Context, outputs: Outputs, _state: Vec<u8>) -> Result<Response, Failure> {
///         Response::json(outputs.view::<f32>("output", &[None, Some(1)])?.as_slice())
///     }
/// }
///
/// gristmill_plugin::export_postprocessor!(Post);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export_postprocessor {
    ($plugin:ident) => {
        $crate::worlds::postprocessor::export_postprocessor_world!(
            $plugin with_types_in $crate::worlds::postprocessor
        );
    };
    ($plugin:ident, init) => {
        $crate::export_postprocessor!($plugin);
        $crate::worlds::initializer::export_initializer_world!(
            $plugin with_types_in $crate::worlds::initializer
        );
    };
}

/// Export a type that implements [`Processor`].
#[macro_export]
macro_rules! export_processor {
    ($plugin:ident) => {
        $crate::worlds::processor::export_processor_world!(
            $plugin with_types_in $crate::worlds::processor
        );
    };
    ($plugin:ident, init) => {
        $crate::export_processor!($plugin);
        $crate::worlds::initializer::export_initializer_world!(
            $plugin with_types_in $crate::worlds::initializer
        );
    };
}
