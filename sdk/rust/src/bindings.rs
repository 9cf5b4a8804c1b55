//! Bindings generated from `wit/`: the imports once, and a module for each world's exports. Only
//! the world `handler` has an import of its own.
//!
//! On other targets than WebAssembly, `reference.rs` has the same items.
#![allow(missing_docs, clippy::all)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "imports",
    generate_all,
    pub_export_macro: true,
    additional_derives: [PartialEq],
    additional_derives_ignore: [
        "part", "named-tensor", "prepared", "letterboxed", "piece", "column", "made", "kept",
        "texts", "encoded", "keys", "http-request", "http-response",
    ],
});

pub use gristmill::plugin::{
    arrays, assets, http, image, json, keep, log, prepare, store, tables, tensors, tokenizer, types,
};
pub use worlds::handler::gristmill::plugin::models;

pub mod worlds {
    /// The exports of one world over the shared imports. Types that implement the world's trait get
    /// them below. `$own` is an interface that only this world imports.
    macro_rules! world {
        ($module:ident, $world:literal, $macro:literal $(, $own:literal)?) => {
            pub mod $module {
                wit_bindgen::generate!({
                    path: "../../wit",
                    world: $world,
                    pub_export_macro: true,
                    export_macro_name: $macro,
                    additional_derives: [PartialEq],
                    additional_derives_ignore: ["run"],
                    with: {
                        "gristmill:plugin/types@0.3.0": crate::bindings::types,
                        "gristmill:plugin/tensors@0.3.0": crate::bindings::tensors,
                        "gristmill:plugin/image@0.3.0": crate::bindings::image,
                        "gristmill:plugin/log@0.3.0": crate::bindings::log,
                        "gristmill:plugin/prepare@0.3.0": crate::bindings::prepare,
                        "gristmill:plugin/json@0.3.0": crate::bindings::json,
                        "gristmill:plugin/arrays@0.3.0": crate::bindings::arrays,
                        "gristmill:plugin/store@0.3.0": crate::bindings::store,
                        "gristmill:plugin/assets@0.3.0": crate::bindings::assets,
                        "gristmill:plugin/tokenizer@0.3.0": crate::bindings::tokenizer,
                        "gristmill:plugin/tables@0.3.0": crate::bindings::tables,
                        "gristmill:plugin/keep@0.3.0": crate::bindings::keep,
                        "gristmill:plugin/http@0.3.0": crate::bindings::http,
                        $($own: generate,)?
                    },
                });
            }
        };
    }

    world!(preprocessor, "preprocessor", "export_preprocessor_world");
    world!(postprocessor, "postprocessor", "export_postprocessor_world");
    world!(processor, "processor", "export_processor_world");
    world!(handler, "handler", "export_handler_world", "gristmill:plugin/models@0.3.0");
    world!(initializer, "initializer", "export_initializer_world");

    use crate::{Context, Failure, HandleError, NamedTensor, Outputs, Prepared, Request, Response};

    /// What each exported function does before the plugin's own code.
    fn begin() {
        crate::panic::log_panics();
        #[cfg(feature = "log")]
        crate::log::install();
    }

    impl<T: crate::Preprocessor> preprocessor::Guest for T {
        fn preprocess(context: &Context, request: &Request) -> Result<Prepared, Failure> {
            begin();
            T::preprocess(context, request)
        }
    }

    impl<T: crate::Postprocessor> postprocessor::Guest for T {
        fn postprocess(
            context: &Context,
            outputs: Vec<NamedTensor>,
            state: Vec<u8>,
        ) -> Result<Response, Failure> {
            begin();
            T::postprocess(context, Outputs::new(outputs), state)
        }
    }

    impl<T: crate::Processor> processor::Guest for T {
        fn preprocess(context: &Context, request: &Request) -> Result<Prepared, Failure> {
            begin();
            T::preprocess(context, request)
        }

        fn postprocess(
            context: &Context,
            outputs: Vec<NamedTensor>,
            state: Vec<u8>,
        ) -> Result<Response, Failure> {
            begin();
            T::postprocess(context, Outputs::new(outputs), state)
        }
    }

    impl<T: crate::Handler> handler::Guest for T {
        fn handle(context: &Context, request: &Request) -> Result<Response, HandleError> {
            begin();
            T::handle(context, request)
        }
    }

    impl<T: crate::Init> initializer::Guest for T {
        fn init() -> Result<(), String> {
            begin();
            T::init()
        }
    }
}
