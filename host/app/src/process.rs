//! What only the process as a whole can do, and only with `unsafe`: its environment, and its end.

#![allow(unsafe_code, reason = "the standard library and libc have no safe way to either")]

/// Set what libraries read from the environment. To be called before there is another thread.
///
/// ONNX Runtime 1.31 opens a database and writes a device id under the home directory when it is set
/// up, unless this says otherwise.
pub(crate) fn prepare_environment() {
    // SAFETY: `main` calls this first, so that there is one thread, and nobody else reads or writes the
    // environment meanwhile.
    unsafe { std::env::set_var("ORT_DISABLE_TELEMETRY", "1") };
}

/// End the process without letting libraries clean up: a run that does not end would go on in a
/// runtime that is being taken down, and crash.
pub(crate) fn end_at_once() -> ! {
    // SAFETY: it takes a number, touches no memory, and does not return.
    unsafe { libc::_exit(0) }
}
