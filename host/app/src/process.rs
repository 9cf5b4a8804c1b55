//! The environment and the end of the process. Both concern all threads and need `unsafe`.

#![allow(unsafe_code, reason = "neither has a safe function")]

use std::io::Write;

/// Set variables that libraries read from the environment. Must be called before another thread
/// starts.
///
/// ONNX Runtime 1.31 opens a database and writes a device id under the home directory when it is
/// set up, unless this variable forbids it.
pub(crate) fn prepare_environment() {
    // SAFETY: `main` calls this first. There is only one thread, so no other thread reads or writes
    // the environment.
    unsafe { std::env::set_var("ORT_DISABLE_TELEMETRY", "1") };
}

/// End the process without running destructors, because threads may still use what the destructors
/// of libraries would free.
pub(crate) fn end(code: i32) -> ! {
    // The process ends, so an error cannot be handled.
    let _ = std::io::stdout().flush();
    // SAFETY: `_exit` takes a number, accesses no memory, and does not return.
    unsafe { libc::_exit(code) }
}
