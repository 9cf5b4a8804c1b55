//! Bindings generated from `wit/`: the imports once, and a module for each world's exports.
#![allow(missing_docs, clippy::all)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "imports",
    generate_all,
    pub_export_macro: true,
});

pub use gristmill::plugin::{image, log, prepare, tensors, types};

pub mod worlds {
    /// The exports of one world over the shared imports. Types that implement the world's trait get
    /// them below.
    macro_rules! world {
        ($module:ident, $world:literal, $macro:literal) => {
            pub mod $module {
                wit_bindgen::generate!({
                    path: "../../wit",
                    world: $world,
                    pub_export_macro: true,
                    export_macro_name: $macro,
                    with: {
                        "gristmill:plugin/types@0.1.0": crate::bindings::types,
                        "gristmill:plugin/tensors@0.1.0": crate::bindings::tensors,
                        "gristmill:plugin/image@0.1.0": crate::bindings::image,
                        "gristmill:plugin/log@0.1.0": crate::bindings::log,
                        "gristmill:plugin/prepare@0.1.0": crate::bindings::prepare,
                    },
                });
            }
        };
    }

    world!(preprocessor, "preprocessor", "export_preprocessor_world");
    world!(postprocessor, "postprocessor", "export_postprocessor_world");
    world!(processor, "processor", "export_processor_world");

    use crate::panic::log_panics;
    use crate::{Failure, NamedTensor, Outputs, Prepared, Request, Response};

    impl<T: crate::Preprocessor> preprocessor::Guest for T {
        fn preprocess(request: Request) -> Result<Prepared, Failure> {
            log_panics();
            T::preprocess(request)
        }
    }

    impl<T: crate::Postprocessor> postprocessor::Guest for T {
        fn postprocess(outputs: Vec<NamedTensor>, state: Vec<u8>) -> Result<Response, Failure> {
            log_panics();
            T::postprocess(Outputs::new(outputs), state)
        }
    }

    impl<T: crate::Processor> processor::Guest for T {
        fn preprocess(request: Request) -> Result<Prepared, Failure> {
            log_panics();
            T::preprocess(request)
        }

        fn postprocess(outputs: Vec<NamedTensor>, state: Vec<u8>) -> Result<Response, Failure> {
            log_panics();
            T::postprocess(Outputs::new(outputs), state)
        }
    }
}
