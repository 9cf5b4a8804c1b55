//! The interface `store`, as Rust types and traits.

wasmtime::component::bindgen!({
    path: "../../wit",
    interfaces: "import gristmill:plugin/store@0.3.0;",
    imports: {
        "gristmill:plugin/store.get": async | trappable,
        "gristmill:plugin/store.get-many": async | trappable,
        "gristmill:plugin/store.gather": async | trappable,
        "gristmill:plugin/store.gather-by": async | trappable,
        "gristmill:plugin/store.set": async | trappable,
        "gristmill:plugin/store.increment": async | trappable,
        default: trappable,
    },
    with: {
        "gristmill:plugin/types": crate::capability::types::wit,
        "gristmill:plugin/tensors": crate::capability::tensors::wit,
    },
});

pub use self::gristmill::plugin::store as wit;
