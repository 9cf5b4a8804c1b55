//! The environment and the end of the process. Both concern all threads and need `unsafe`.

#![allow(unsafe_code, reason = "neither has a safe function")]

use std::io::Write;

use gristmill_admin::observe::Heap;

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

// Of mimalloc, which is this program's allocator. Its package declares it only with a feature.
unsafe extern "C" {
    fn mi_process_info(
        elapsed_ms: *mut usize,
        user_ms: *mut usize,
        system_ms: *mut usize,
        resident: *mut usize,
        resident_peak: *mut usize,
        committed: *mut usize,
        committed_peak: *mut usize,
        page_faults: *mut usize,
    );
    fn mi_collect(force: bool);
}

/// The memory of the allocator.
pub(crate) fn heap() -> Heap {
    let mut figures = [0_usize; 8];
    let [elapsed, user, system, resident, resident_peak, committed, committed_peak, faults] =
        &mut figures;
    // SAFETY: each pointer leads to a number of its own, which may be written.
    unsafe {
        mi_process_info(
            elapsed,
            user,
            system,
            resident,
            resident_peak,
            committed,
            committed_peak,
            faults,
        );
    }
    Heap { committed: *committed as u64, committed_peak: *committed_peak as u64 }
}

/// Let the allocator give back to the system what was freed long ago. It does so by itself only
/// while memory is allocated.
pub(crate) fn give_back_freed() {
    // SAFETY: may be called at any time, on any thread.
    unsafe { mi_collect(false) };
}

/// End the process without running destructors, because threads may still use what the destructors
/// of libraries would free.
pub(crate) fn end(code: i32) -> ! {
    // The process ends, so an error cannot be handled.
    let _ = std::io::stdout().flush();
    if cfg!(gristmill_counting) && std::env::var_os("LLVM_PROFILE_FILE").is_some() {
        // Built with counters (`cargo xtask dist`), which the compiler's runtime writes in a
        // destructor. Children do not have the variable: their counters would be a larger file than
        // they may write.
        std::process::exit(code)
    }
    // SAFETY: `_exit` takes a number, accesses no memory, and does not return.
    unsafe { libc::_exit(code) }
}
