//! `prepare`: the record that `preprocess` returns. It has no functions.

use wasmtime::component::{HasSelf, Linker};

use crate::call::CallState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        interfaces: "import gristmill:plugin/prepare@0.3.0;",
        with: {
            "gristmill:plugin/tensors": crate::capability::tensors::wit,
        },
    });
}

pub use self::bindings::gristmill::plugin::prepare as wit;

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &["gristmill:plugin/prepare@0.3.0"];

pub(crate) fn link<S: Send + 'static>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

impl<S> wit::Host for CallState<S> {}
