//! The target `messages`: see `src/messages.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: gristmill_fuzz::let_handlers_run(),
    |bytes: &[u8]| gristmill_fuzz::messages::run(bytes)
);
