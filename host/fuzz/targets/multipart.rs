//! The target `multipart`: see `src/multipart.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gristmill_fuzz::multipart::run(bytes));
