//! The target `images`: see `src/images.rs`.

#![no_main]

// The decoders are foreign, and a panic of theirs is an error of that picture. libFuzzer's hook
// would end the process at any panic; without it, only a panic that leaves the target does.
libfuzzer_sys::fuzz_target!(
    init: {
        gristmill_fuzz::let_handlers_run();
        std::panic::set_hook(Box::new(gristmill_fuzz::images::remember_panic));
    },
    |bytes: &[u8]| gristmill_fuzz::images::run(bytes)
);
