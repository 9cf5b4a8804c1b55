//! The interfaces of `wasi:nn`, as Rust types and traits.

wasmtime::component::bindgen!({
    path: "wit/wasi-nn.wit",
    interfaces: "
        import wasi:nn/tensor@0.2.0-rc-2024-10-28;
        import wasi:nn/errors@0.2.0-rc-2024-10-28;
        import wasi:nn/inference@0.2.0-rc-2024-10-28;
        import wasi:nn/graph@0.2.0-rc-2024-10-28;
    ",
    imports: {
        "wasi:nn/tensor.[constructor]tensor": async | trappable,
        "wasi:nn/tensor.[method]tensor.dimensions": async | trappable,
        "wasi:nn/tensor.[method]tensor.data": async | trappable,
        "wasi:nn/graph.load-by-name": async | trappable,
        "wasi:nn/inference.[method]graph-execution-context.compute": async | trappable,
        default: trappable,
    },
    with: {
        "wasi:nn/tensor.tensor": crate::capability::nn::resources::NnTensor,
        "wasi:nn/errors.error": crate::capability::nn::resources::Error,
        "wasi:nn/inference.graph-execution-context": crate::capability::nn::resources::ExecutionContext,
        "wasi:nn/graph.graph": crate::capability::nn::resources::Graph,
    },
});

pub use self::wasi::nn as wit;
