//! The environment and the end of the process. Both concern all of it, and need `unsafe`.

#![allow(unsafe_code, reason = "the standard library and libc have no safe way to either")]

use std::io::Write;

/// Set variables that libraries read from the environment. Must be called before there is another
/// thread.
///
/// ONNX Runtime 1.31 opens a database and writes a device id under the home directory when it is
/// set up, unless this variable forbids it.
pub(crate) fn prepare_environment() {
    // SAFETY: `main` calls this first. There is only one thread, so no other thread reads or writes
    // the environment.
    unsafe { std::env::set_var("ORT_DISABLE_TELEMETRY", "1") };
}

/// End the process without running destructors: threads may still be at work, and libraries that
/// clean up under them crash.
pub(crate) fn end(code: i32) -> ! {
    // The error is ignored: the process ends, and nothing is left that could handle it.
    let _ = std::io::stdout().flush();
    // SAFETY: it takes a number, touches no memory, and does not return.
    unsafe { libc::_exit(code) }
}
