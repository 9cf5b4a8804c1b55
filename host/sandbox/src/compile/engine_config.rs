//! The engine that compiled code is for.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use wasmtime::{Config, Engine};

/// All of the configuration that compiled code depends on.
pub(crate) fn compile_config() -> Config {
    let mut config = Config::new();
    config
        .concurrency_support(false)
        .epoch_interruption(true)
        .memory_init_cow(true)
        .wasm_component_model(true)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(16));
    config
}

/// The hash by which compiled code names its engine.
pub(crate) fn hash_of(engine: &Engine) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
