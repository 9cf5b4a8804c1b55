//! The interface `http`, as Rust types and traits.

wasmtime::component::bindgen!({
    path: "../../wit",
    interfaces: "import gristmill:plugin/http@0.3.0;",
    imports: {
        "gristmill:plugin/http.send": async | trappable,
        default: trappable,
    },
    with: {
        "gristmill:plugin/types": crate::capability::types::wit,
        "gristmill:plugin/tensors": crate::capability::tensors::wit,
    },
});

pub use self::gristmill::plugin::http as wit;
