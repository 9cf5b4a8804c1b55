//! The target `multipart`: see `src/multipart.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: gristmill_fuzz::let_handlers_run(),
    |bytes: &[u8]| gristmill_fuzz::multipart::run(bytes)
);
