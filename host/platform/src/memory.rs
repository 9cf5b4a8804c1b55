//! The memory that native libraries allocate for one owner, counted and bounded.
//!
//! ONNX Runtime takes the memory of a session from the C library and cannot limit it. It calls
//! `aligned_alloc` since 1.31 (through C++'s `operator new`), and `posix_memalign` before. This
//! module defines both for the whole process: the linker prefers a program's own symbol to the C
//! library's, also for libraries that are loaded later. An allocation is counted if the calling
//! thread works for an owner, and refused if it exceeds the owner's limit; the library turns that
//! into an error of its own. Freed memory is not subtracted: the owner knows when all of it is
//! free, and resets the count ([`NativeMemory::reset`]).
//!
//! Rust's own allocations do not pass here, nor does `malloc`.

#![allow(unsafe_code, reason = "the function is called by C code")]

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(target_env = "musl")]
compile_error!("musl's memalign calls aligned_alloc, which this module defines by memalign");

/// The memory that native libraries allocated for one owner.
#[derive(Debug)]
pub struct NativeMemory {
    limit_bytes: usize,
    taken: AtomicUsize,
    refused: AtomicUsize,
}

thread_local! {
    /// The owner for whom the thread works; null if allocations are not counted.
    static OWNER: Cell<*const NativeMemory> = const { Cell::new(ptr::null()) };
}

impl NativeMemory {
    /// An owner that may take `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, taken: AtomicUsize::new(0), refused: AtomicUsize::new(0) }
    }

    /// The most that may be taken, in bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// The bytes taken since the last reset.
    pub fn taken_bytes(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// How many allocations were refused so far.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Count taken bytes from zero again.
    pub fn reset(&self) {
        self.taken.store(0, Ordering::Relaxed);
    }

    /// Count what native libraries allocate on this thread while `work` goes on.
    pub fn count<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Restore(*const NativeMemory);
        impl Drop for Restore {
            fn drop(&mut self) {
                OWNER.set(self.0);
            }
        }
        // Also if `work` panics, so that the pointer does not outlive the borrow.
        let _restore = Restore(OWNER.replace(self));
        work()
    }

    /// Count `bytes` more. Returns false, and counts nothing, if that exceeds the limit.
    fn take(&self, bytes: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.limit_bytes);
        let fits = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if !fits {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }
}

/// Whether native libraries of this process allocate through this module. A program that was linked
/// in an unusual way may not export the functions.
pub fn is_counted() -> bool {
    let is_own = |name: &CStr, function: *const c_void| {
        // SAFETY: the name ends with a zero byte; the address found is compared, never called.
        ptr::eq(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }, function)
    };
    is_own(c"posix_memalign", posix_memalign as *const c_void)
        && is_own(c"aligned_alloc", aligned_alloc as *const c_void)
}

/// As of `posix_memalign(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(
    memory: *mut *mut c_void,
    alignment: usize,
    bytes: usize,
) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let allocated = allocate(alignment, bytes);
    if allocated.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller gives a place for a pointer.
    unsafe { memory.write(allocated) };
    0
}

/// As of `aligned_alloc(3)`.
#[unsafe(no_mangle)]
extern "C" fn aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void {
    if alignment.is_power_of_two() { allocate(alignment, bytes) } else { ptr::null_mut() }
}

/// Memory for `free`. Null if there is none, or if it exceeds the owner's limit. `alignment` is a
/// power of two.
fn allocate(alignment: usize, bytes: usize) -> *mut c_void {
    let owner = OWNER.get();
    // SAFETY: the pointer is null or was set by `count`, which resets it before its borrow ends.
    if unsafe { owner.as_ref() }.is_some_and(|owner| !owner.take(bytes)) {
        return ptr::null_mut();
    }
    // SAFETY: the alignment is a power of two.
    unsafe { libc::memalign(alignment, bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocates in both ways and frees again. Returns whether there was memory.
    fn allocates(bytes: usize) -> bool {
        let mut memory = ptr::null_mut();
        // SAFETY: a place for a pointer, and an alignment that is allowed.
        let outcome = unsafe { libc::posix_memalign(&mut memory, 64, bytes) };
        // SAFETY: it came from the allocator, or is null, and is not used any more.
        unsafe { libc::free(memory) };
        // SAFETY: any alignment may be asked for.
        let other = unsafe { libc::aligned_alloc(64, bytes) };
        // SAFETY: as above.
        unsafe { libc::free(other) };
        assert_eq!(outcome == libc::ENOMEM, other.is_null());
        outcome == 0
    }

    #[test]
    fn what_an_owner_takes_is_counted_and_bounded_until_its_work_ends() {
        assert!(is_counted());
        let owner = NativeMemory::new(1000);
        owner.count(|| {
            assert!(allocates(300));
            assert!(!allocates(600));
            assert!(!allocates(usize::MAX));
            assert!(allocates(200));
            assert_eq!(owner.taken_bytes(), 1000);
            owner.reset();
            assert!(allocates(500));
        });
        assert!(allocates(5000));
        assert_eq!(owner.taken_bytes(), 1000);
        let panicked = std::panic::catch_unwind(|| owner.count(|| panic!("as told")));
        assert!(panicked.is_err());
        assert!(allocates(1));
    }
}
