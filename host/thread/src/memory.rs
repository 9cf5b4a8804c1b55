//! The memory that native libraries allocate for one owner, counted and bounded.
//!
//! ONNX Runtime takes the memory of a session from `posix_memalign`, and has no limit for it. This
//! module defines `posix_memalign` for the whole process: the linker prefers a program's own symbol
//! to the C library's, also for libraries that are loaded later. The allocation is counted where the
//! calling thread works for an owner, and refused where it is over the owner's limit; the library
//! turns that into an error of its own. What is given back is not counted: the owner knows when
//! that happens, and starts anew ([`NativeMemory::reset`]).
//!
//! Rust's own allocations do not pass here, nor does `malloc`.

#![allow(unsafe_code, reason = "the function is called by C code")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory that native libraries allocated for one owner.
#[derive(Debug)]
pub struct NativeMemory {
    limit_bytes: usize,
    taken: AtomicUsize,
}

thread_local! {
    /// Whom the thread works for; null: nobody who is counted.
    static OWNER: Cell<*const NativeMemory> = const { Cell::new(ptr::null()) };
}

impl NativeMemory {
    /// An owner that may take `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, taken: AtomicUsize::new(0) }
    }

    /// The most that may be taken, in bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// What was taken since the last reset, in bytes.
    pub fn taken_bytes(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Count from zero again.
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
        // Also where `work` panics, so that the pointer does not outlive the borrow.
        let _restore = Restore(OWNER.replace(self));
        work()
    }

    /// Whether so much more is allowed; counted if so.
    fn take(&self, bytes: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.limit_bytes);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

/// Whether native libraries of this process allocate through this module. A program that was linked
/// in an unusual way may not export the function.
pub fn is_counted() -> bool {
    // SAFETY: the name ends with a zero byte; the address found is compared, never called.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"posix_memalign".as_ptr()) };
    ptr::eq(found, posix_memalign as *const c_void)
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
    let owner = OWNER.get();
    // SAFETY: the pointer is null or was set by `count`, which resets it before its borrow ends.
    if unsafe { owner.as_ref() }.is_some_and(|owner| !owner.take(bytes)) {
        return libc::ENOMEM;
    }
    // SAFETY: the alignment is a power of two. `free` takes what `memalign` gave.
    let allocated = unsafe { libc::memalign(alignment, bytes) };
    if allocated.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller gives a place for a pointer.
    unsafe { memory.write(allocated) };
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        #[link_name = "posix_memalign"]
        fn allocate(memory: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int;
    }

    /// Allocates, gives back, and says what the function returned.
    fn allocated(bytes: usize) -> c_int {
        let mut memory = ptr::null_mut();
        // SAFETY: a place for a pointer, and an alignment that is allowed.
        let outcome = unsafe { allocate(&mut memory, 64, bytes) };
        if outcome == 0 {
            assert!(memory.cast::<u8>().addr().is_multiple_of(64));
            // SAFETY: it came from the allocator, and nobody has it.
            unsafe { libc::free(memory) };
        }
        outcome
    }

    #[test]
    fn what_an_owner_takes_is_counted_and_bounded_until_its_work_ends() {
        assert!(is_counted());
        let owner = NativeMemory::new(1000);
        owner.count(|| {
            assert_eq!(allocated(600), 0);
            assert_eq!(allocated(600), libc::ENOMEM);
            assert_eq!(allocated(usize::MAX), libc::ENOMEM);
            assert_eq!((owner.taken_bytes(), allocated(400)), (600, 0));
            owner.reset();
            assert_eq!(allocated(1000), 0);
        });
        assert_eq!((allocated(5000), owner.taken_bytes()), (0, 1000));
        let panicked = std::panic::catch_unwind(|| owner.count(|| panic!("as told")));
        assert!(panicked.is_err());
        assert_eq!(allocated(1), 0);
    }
}
