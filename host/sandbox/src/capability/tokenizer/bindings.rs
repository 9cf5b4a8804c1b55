//! The interface `tokenizer`, as Rust types and traits.

wasmtime::component::bindgen!({
    path: "../../wit",
    interfaces: "import gristmill:plugin/tokenizer@0.3.0;",
    imports: {
        "gristmill:plugin/tokenizer.encode": async | trappable,
        "gristmill:plugin/tokenizer.decode": async | trappable,
        "gristmill:plugin/tokenizer.token-to-id": async | trappable,
        default: trappable,
    },
    with: {
        "gristmill:plugin/types": crate::capability::types::wit,
        "gristmill:plugin/tensors": crate::capability::tensors::wit,
    },
});

pub use self::gristmill::plugin::tokenizer as wit;
