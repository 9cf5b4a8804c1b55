//! The interface `tables`, as Rust types and traits.

wasmtime::component::bindgen!({
    path: "../../wit",
    interfaces: "import gristmill:plugin/tables@0.3.0;",
    imports: {
        "gristmill:plugin/tables.gather": async | trappable,
        default: trappable,
    },
    with: { "gristmill:plugin/tensors": crate::capability::tensors::wit },
});

pub use self::gristmill::plugin::tables as wit;
