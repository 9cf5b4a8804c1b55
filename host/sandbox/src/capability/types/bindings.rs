//! The interface `types`, as Rust types and traits.

wasmtime::component::bindgen!({
    path: "../../wit",
    interfaces: "import gristmill:plugin/types@0.3.0;",
    imports: {
        "gristmill:plugin/types.[method]blob.read": async | trappable,
        "gristmill:plugin/types.[method]blob.tensor": async | trappable,
        "gristmill:plugin/types.[static]blob.from-bytes": async | trappable,
        "gristmill:plugin/types.[static]blob.from-base64": async | trappable,
        "gristmill:plugin/types.[method]context.settings": async | trappable,
        "gristmill:plugin/types.[method]request.headers": async | trappable,
        "gristmill:plugin/types.[method]request.query": async | trappable,
        "gristmill:plugin/types.[method]request.parts": async | trappable,
        "gristmill:plugin/types.[method]request.json-tensor": async | trappable,
        "gristmill:plugin/types.[method]request.json-blob": async | trappable,
        "gristmill:plugin/types.[method]request.json-value": async | trappable,
        default: trappable,
    },
    with: {
        "gristmill:plugin/tensors": crate::capability::tensors::wit,
        "gristmill:plugin/types.blob": bytes::Bytes,
        "gristmill:plugin/types.context": crate::request::SharedContext,
        "gristmill:plugin/types.request": crate::request::Request,
    },
});

pub use self::gristmill::plugin::types as wit;
