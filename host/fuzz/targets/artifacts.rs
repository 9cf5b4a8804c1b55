//! The target `artifacts`: see `src/artifacts.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: gristmill_fuzz::let_handlers_run(),
    |bytes: &[u8]| gristmill_fuzz::artifacts::run(bytes)
);
