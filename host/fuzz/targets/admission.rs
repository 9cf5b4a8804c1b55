//! The target `admission`: see `src/admission.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gristmill_fuzz::admission::run(bytes));
