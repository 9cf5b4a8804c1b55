//! The target `tensors`: see `src/tensors.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: gristmill_fuzz::let_handlers_run(),
    |bytes: &[u8]| gristmill_fuzz::tensors::run(bytes)
);
