//! The interface `models`, as Rust types and traits.

wasmtime::component::bindgen!({
    path: "../../wit",
    interfaces: "import gristmill:plugin/models@0.3.0;",
    imports: {
        "gristmill:plugin/models.infer": async | trappable,
        "gristmill:plugin/models.infer-all": async | trappable,
        default: trappable,
    },
    with: {
        "gristmill:plugin/types": crate::capability::types::wit,
        "gristmill:plugin/tensors": crate::capability::tensors::wit,
    },
});

pub use self::gristmill::plugin::models as wit;
