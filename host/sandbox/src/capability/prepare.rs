//! `prepare`: the record that `preprocess` returns. It has no functions.

use wasmtime::component::{HasSelf, Linker};

use crate::call::CallState;
use crate::grant::{Grant, PerCall};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        interfaces: "import gristmill:plugin/prepare@0.2.0;",
        with: {
            "gristmill:plugin/tensors": crate::capability::tensors::wit,
        },
    });
}

pub use self::bindings::gristmill::plugin::prepare as wit;

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &["gristmill:plugin/prepare@0.2.0"];

/// Empty: there are no functions.
pub(crate) struct State;

impl PerCall for State {
    fn grant(_: &Grant<'_>) -> Self {
        Self
    }
}

pub(crate) fn link<S: Send + 'static>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

impl<S> wit::Host for CallState<S> {}
