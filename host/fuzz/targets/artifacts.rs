//! The target `artifacts`: see `src/artifacts.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gristmill_fuzz::artifacts::run(bytes));
