//! The interface `json`, as Rust types and traits.

wasmtime::component::bindgen!({
    path: "../../wit",
    interfaces: "import gristmill:plugin/json@0.3.0;",
    imports: {
        "gristmill:plugin/json.write": async | trappable,
        "gristmill:plugin/json.document": async | trappable,
        default: trappable,
    },
    with: {
        "gristmill:plugin/types": crate::capability::types::wit,
        "gristmill:plugin/tensors": crate::capability::tensors::wit,
    },
});

pub use self::gristmill::plugin::json as wit;
