//! The target `messages`: see `src/messages.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gristmill_fuzz::messages::run(bytes));
