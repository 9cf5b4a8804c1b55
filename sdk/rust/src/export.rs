//! The traits that a plugin implements, and the macros that export them.

use crate::{Context, Failure, HandleError, Outputs, Prepared, Request, Response};

/// A plugin that turns a request into a model's inputs. Export it with [`export_preprocessor!`].
///
/// [`export_preprocessor!`]: crate::export_preprocessor
pub trait Preprocessor {
    /// Returns one tensor for each of the model's inputs, and the state for the postprocessor of
    /// the same request. Dimension 0 of a tensor is rows.
    ///
    /// # Errors
    /// The answer to the client.
    fn preprocess(context: &Context, request: &Request) -> Result<Prepared, Failure>;
}

/// A plugin that turns a model's outputs into a response. Export it with [`export_postprocessor!`].
///
/// [`export_postprocessor!`]: crate::export_postprocessor
pub trait Postprocessor {
    /// Returns the response. `outputs` has this request's rows of every output, and `state` comes
    /// from the preprocessor.
    ///
    /// # Errors
    /// The answer to the client.
    fn postprocess(
        context: &Context,
        outputs: Outputs,
        state: Vec<u8>,
    ) -> Result<Response, Failure>;
}

/// Both in one plugin. Export it with [`export_processor!`].
///
/// [`export_processor!`]: crate::export_processor
pub trait Processor {
    /// As in [`Preprocessor`].
    ///
    /// # Errors
    /// The answer to the client.
    fn preprocess(context: &Context, request: &Request) -> Result<Prepared, Failure>;

    /// As in [`Postprocessor`]. Unless the pipeline reuses instances, it runs in another instance
    /// than `preprocess` did.
    ///
    /// # Errors
    /// The answer to the client.
    fn postprocess(
        context: &Context,
        outputs: Outputs,
        state: Vec<u8>,
    ) -> Result<Response, Failure>;
}

/// A plugin that answers a request itself, with the runs of models that it needs. Export it with
/// [`export_handler!`].
///
/// [`export_handler!`]: crate::export_handler
pub trait Handler {
    /// Returns the response. [`models::infer`](crate::models::infer) and
    /// [`models::infer_all`](crate::models::infer_all) run the models that the pipeline names. All
    /// runs belong to this call, whose CPU time and memory the pipeline limits.
    ///
    /// # Errors
    /// The answer to the client. `?` makes one from an error of a model, from a [`Failure`] and
    /// from all errors that make a failure.
    fn handle(context: &Context, request: &Request) -> Result<Response, HandleError>;
}

/// Work that is done once, when the plugin is uploaded: parsing a vocabulary into a static, for
/// example. Export it with the argument `init` of the export macros.
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::OnceLock;
///
/// use gristmill_plugin::{Context, Failure, Init, Prepared, Preprocessor, Request, Tensor};
///
/// /// The number of each word.
/// static WORDS: OnceLock<HashMap<&str, i64>> = OnceLock::new();
///
/// struct Tagger;
///
/// impl Init for Tagger {
///     fn init() -> Result<(), String> {
///         WORDS.get_or_init(|| "the\na\nan".lines().zip(0..).collect());
///         Ok(())
///     }
/// }
///
/// impl Preprocessor for Tagger {
///     fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
///         let words = WORDS.get().ok_or_else(|| Failure::internal("there was no init"))?;
///         let text = request.text()?;
///         let id = |word| words.get(word).copied().unwrap_or(-1);
///         let ids: Vec<i64> = text.split(' ').map(id).collect();
///         Ok(Prepared::new().input("ids", Tensor::from_slice(&[1, ids.len()], &ids)?))
///     }
/// }
///
/// gristmill_plugin::export_preprocessor!(Tagger, init);
/// # fn main() {}
/// ```
pub trait Init {
    /// Every instance begins with the memory that this call leaves.
    ///
    /// It can only write to the log. It has no clock, random numbers, tensors or pictures.
    ///
    /// # Errors
    /// A text with which the upload is refused.
    fn init() -> Result<(), String>;
}

/// Export a type that implements [`Preprocessor`](crate::Preprocessor), and with the argument
/// `init` also [`Init`](crate::Init).
///
/// ```
/// use gristmill_plugin::{Context, Failure, Prepared, Preprocessor, Request, Tensor};
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
        $crate::__export!(Preprocessor, $plugin);
    };
    ($plugin:ident, init) => {
        $crate::__export!(Preprocessor, $plugin);
        $crate::__export!(Init, $plugin);
    };
}

/// Export a type that implements [`Postprocessor`](crate::Postprocessor), and with the argument
/// `init` also [`Init`](crate::Init).
///
/// ```
/// use gristmill_plugin::{Context, Failure, Outputs, Postprocessor, Response};
///
/// struct Post;
///
/// impl Postprocessor for Post {
///     fn postprocess(_: &Context, outputs: Outputs, _: Vec<u8>) -> Result<Response, Failure> {
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
        $crate::__export!(Postprocessor, $plugin);
    };
    ($plugin:ident, init) => {
        $crate::__export!(Postprocessor, $plugin);
        $crate::__export!(Init, $plugin);
    };
}

/// Export a type that implements [`Processor`](crate::Processor), and with the argument `init` also
/// [`Init`](crate::Init).
#[macro_export]
macro_rules! export_processor {
    ($plugin:ident) => {
        $crate::__export!(Processor, $plugin);
    };
    ($plugin:ident, init) => {
        $crate::__export!(Processor, $plugin);
        $crate::__export!(Init, $plugin);
    };
}

/// Export a type that implements [`Handler`](crate::Handler), and with the argument `init` also
/// [`Init`](crate::Init).
///
/// ```
/// use gristmill_plugin::{Context, HandleError, Handler, Request, Response, Tensor, models};
///
/// struct Cascade;
///
/// impl Handler for Cascade {
///     fn handle(_context: &Context, request: &Request) -> Result<Response, HandleError> {
///         let values: Vec<f32> = request.json()?;
///         let input = Tensor::from_slice(&[1, values.len()], &values)?;
///         let mut outputs = models::infer("small", &[("input", &input)])?;
///         let best = outputs.get("scores")?.softmax().map(|scores| scores.argmax());
///         let is_sure = best.is_some_and(|best| best.iter().all(|best| best.value > 0.9));
///         if !is_sure {
///             outputs = models::infer("large", &[("input", &input)])?;
///         }
///         Ok(Response::json(outputs.get("scores")?)?)
///     }
/// }
///
/// gristmill_plugin::export_handler!(Cascade);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export_handler {
    ($plugin:ident) => {
        $crate::__export!(Handler, $plugin);
    };
    ($plugin:ident, init) => {
        $crate::__export!(Handler, $plugin);
        $crate::__export!(Init, $plugin);
    };
}

#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
#[macro_export]
macro_rules! __export {
    (Preprocessor, $plugin:ident) => {
        $crate::worlds::preprocessor::export_preprocessor_world!(
            $plugin with_types_in $crate::worlds::preprocessor
        );
    };
    (Postprocessor, $plugin:ident) => {
        $crate::worlds::postprocessor::export_postprocessor_world!(
            $plugin with_types_in $crate::worlds::postprocessor
        );
    };
    (Processor, $plugin:ident) => {
        $crate::worlds::processor::export_processor_world!(
            $plugin with_types_in $crate::worlds::processor
        );
    };
    (Handler, $plugin:ident) => {
        $crate::worlds::handler::export_handler_world!(
            $plugin with_types_in $crate::worlds::handler
        );
    };
    (Init, $plugin:ident) => {
        $crate::worlds::initializer::export_initializer_world!(
            $plugin with_types_in $crate::worlds::initializer
        );
    };
}

/// Outside of WebAssembly nothing is exported. The compiler still checks the trait.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __export {
    ($role:ident, $plugin:ident) => {
        const _: fn() = || {
            fn implements<T: $crate::$role>() {}
            implements::<$plugin>();
        };
    };
}
