//! The interface `tensors`, as Rust types and traits.

wasmtime::component::bindgen!({
    path: "../../wit",
    interfaces: "import gristmill:plugin/tensors@0.3.0;",
    imports: {
        "gristmill:plugin/tensors.[static]tensor.create": async | trappable,
        "gristmill:plugin/tensors.[method]tensor.data": async | trappable,
        "gristmill:plugin/tensors.[method]tensor.read": async | trappable,
        "gristmill:plugin/tensors.[method]tensor.argmax": async | trappable,
        "gristmill:plugin/tensors.[method]tensor.top-k": async | trappable,
        "gristmill:plugin/tensors.[method]tensor.softmax": async | trappable,
        "gristmill:plugin/tensors.[static]tensor.concat": async | trappable,
        "gristmill:plugin/tensors.[static]tensor.stack": async | trappable,
        "gristmill:plugin/tensors.[method]tensor.slice": async | trappable,
        "gristmill:plugin/tensors.[method]tensor.cast": async | trappable,
        default: trappable,
    },
    with: { "gristmill:plugin/tensors.tensor": gristmill_core::Tensor },
});

pub use self::gristmill::plugin::tensors as wit;
