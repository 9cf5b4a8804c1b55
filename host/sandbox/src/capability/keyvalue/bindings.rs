//! The interfaces of `wasi:keyvalue`, as Rust types and traits.

wasmtime::component::bindgen!({
    path: "wit/wasi-keyvalue.wit",
    interfaces: "include wasi:keyvalue/imports@0.2.0-draft2;",
    imports: { default: async | trappable },
    with: {
        "wasi:keyvalue/store.bucket": crate::capability::keyvalue::handles::Bucket,
        "wasi:keyvalue/atomics.cas": crate::capability::keyvalue::handles::Cas,
    },
});

pub use self::wasi::keyvalue::{atomics, batch, store};
