//! The interface `arrays`, as Rust types and traits.

wasmtime::component::bindgen!({
    path: "../../wit",
    interfaces: "import gristmill:plugin/arrays@0.3.0;",
    imports: {
        "gristmill:plugin/arrays.evaluate": async | trappable,
        "gristmill:plugin/arrays.read": async | trappable,
        default: trappable,
    },
    with: { "gristmill:plugin/tensors": crate::capability::tensors::wit },
});

pub use self::gristmill::plugin::arrays as wit;
