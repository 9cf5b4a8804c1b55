//! The interface `image`, as Rust types and traits.

wasmtime::component::bindgen!({
    path: "../../wit",
    interfaces: "import gristmill:plugin/image@0.3.0;",
    imports: {
        "gristmill:plugin/image.[static]pixels.decode": async | trappable,
        "gristmill:plugin/image.[static]pixels.decode-leniently": async | trappable,
        "gristmill:plugin/image.[static]pixels.decode-resized": async | trappable,
        "gristmill:plugin/image.[static]pixels.decode-letterboxed": async | trappable,
        "gristmill:plugin/image.[method]pixels.resize": async | trappable,
        "gristmill:plugin/image.[static]pixels.from-bytes": async | trappable,
        "gristmill:plugin/image.[method]pixels.resize-shorter": async | trappable,
        "gristmill:plugin/image.[method]pixels.pad": async | trappable,
        "gristmill:plugin/image.[method]pixels.letterbox": async | trappable,
        "gristmill:plugin/image.[method]pixels.crop": async | trappable,
        "gristmill:plugin/image.[method]pixels.center-crop": async | trappable,
        "gristmill:plugin/image.[method]pixels.crop-many": async | trappable,
        "gristmill:plugin/image.[method]pixels.draw": async | trappable,
        "gristmill:plugin/image.[method]pixels.encode": async | trappable,
        "gristmill:plugin/image.[method]pixels.to-tensor": async | trappable,
        "gristmill:plugin/image.[method]pixels.statistics": async | trappable,
        "gristmill:plugin/image.[method]pixels.data": async | trappable,
        default: trappable,
    },
    with: {
        "gristmill:plugin/types": crate::capability::types::wit,
        "gristmill:plugin/tensors": crate::capability::tensors::wit,
        "gristmill:plugin/image.pixels": gristmill_imaging::Pixels,
    },
});

pub use self::gristmill::plugin::image as wit;
