//! Logging a panic's message, file and line before the plugin traps.
//!
//! A plugin's panic ends in the instruction `unreachable`, which carries no text, and without WASI
//! a plugin has no standard error. The `export_*` macros install this hook, so that the host's log
//! has the reason. Outside of WebAssembly a panic is written to standard error.

#![cfg(any(target_arch = "wasm32", test))]

use std::panic::PanicHookInfo;

/// Install a hook that logs each panic as one line at level `error`. Later calls do nothing, so
/// that a hook that the plugin sets stays.
#[cfg(target_arch = "wasm32")]
pub(crate) fn log_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            crate::log::write(crate::log::Level::Error, &text_of(panic), &[]);
        }));
    });
}

/// `panicked at src/lib.rs:12:24: as told`.
fn text_of(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a value that is not text");
    match panic.location() {
        Some(location) => format!("panicked at {location}: {message}"),
        None => format!("panicked: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, panic_any, set_hook, take_hook};
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::text_of;

    /// The text of the panic with which `body` ends.
    fn said(body: fn()) -> String {
        // The hook is the process's; other tests of it wait.
        static HOOK: Mutex<()> = Mutex::new(());
        let _guard = HOOK.lock();
        let (sender, receiver) = channel();
        let usual = take_hook();
        set_hook(Box::new(move |panic| sender.send(text_of(panic)).unwrap()));
        let ended = catch_unwind(body);
        set_hook(usual);
        ended.unwrap_err();
        receiver.recv().unwrap()
    }

    #[test]
    fn message_file_and_line_are_in_one_line() {
        let line = line!() + 1;
        let text = said(|| panic!("order {} is bad", 42));
        assert!(text.starts_with(&format!("panicked at src/panic.rs:{line}:")), "{text}");
        assert!(text.ends_with(": order 42 is bad"), "{text}");
    }

    #[test]
    fn a_text_without_values_and_an_index_out_of_bounds() {
        assert!(said(|| panic!("as told")).ends_with(": as told"));
        let out_of_bounds = said(|| {
            let empty: Vec<u8> = Vec::new();
            let _ = std::hint::black_box(empty)[std::hint::black_box(3)];
        });
        assert!(out_of_bounds.contains("the len is 0 but the index is 3"), "{out_of_bounds}");
    }

    #[test]
    fn a_payload_that_is_not_text() {
        assert!(said(|| panic_any(7_u8)).ends_with(": a value that is not text"));
    }
}
