//! What `wit/` says, as Rust types and traits.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "imports",
    imports: {
        "gristmill:plugin/types.[method]blob.read": async | trappable,
        "gristmill:plugin/tensors.[static]tensor.create": async | trappable,
        "gristmill:plugin/tensors.[method]tensor.data": async | trappable,
        "gristmill:plugin/tensors.[method]tensor.read": async | trappable,
        "gristmill:plugin/tensors.[method]tensor.argmax": async | trappable,
        "gristmill:plugin/tensors.[method]tensor.top-k": async | trappable,
        "gristmill:plugin/tensors.[method]tensor.softmax": async | trappable,
        "gristmill:plugin/image.[static]pixels.decode": async | trappable,
        "gristmill:plugin/image.[static]pixels.decode-leniently": async | trappable,
        "gristmill:plugin/image.[method]pixels.resize": async | trappable,
        "gristmill:plugin/image.[method]pixels.crop": async | trappable,
        "gristmill:plugin/image.[method]pixels.to-tensor": async | trappable,
        "gristmill:plugin/image.[method]pixels.data": async | trappable,
        default: trappable,
    },
    with: {
        "gristmill:plugin/types.blob": bytes::Bytes,
        "gristmill:plugin/tensors.tensor": gristmill_core::Tensor,
        "gristmill:plugin/image.pixels": gristmill_imaging::Pixels,
    },
});

pub use gristmill::plugin::{image, log, prepare, tensors, types};
