//! A stack for signal handlers.

use std::ptr;

/// Enough for libFuzzer, which writes the input to a file and prints a trace.
const BYTES: usize = 1 << 20;

/// Give the calling thread a stack for signal handlers: libFuzzer's is to run where the thread's
/// own stack is at its end. A program whose `main` is not Rust's has none.
pub fn let_handlers_run() {
    let memory = Box::leak(vec![0_u8; BYTES].into_boxed_slice());
    let stack = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: BYTES };
    // SAFETY: the memory is never freed and nothing else uses it.
    let failed = unsafe { libc::sigaltstack(&stack, ptr::null_mut()) };
    assert_eq!(failed, 0, "the kernel takes the stack");
}
