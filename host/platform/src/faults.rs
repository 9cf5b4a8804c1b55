//! The page faults of a thread.
//!
//! A thread that writes to a page of a mapping of its own for the first time has a page fault. So
//! if a thread has had none, no page that it worked on has come to be written.

#![allow(unsafe_code, reason = "libc has no safe way to them")]

use std::mem::zeroed;
use std::ptr;
use std::sync::LazyLock;

/// The bytes of the page that is written to, to see whether that is counted.
const PAGE_BYTES: usize = 4096;

/// Kernels that only look like Linux may count no page faults.
static ARE_COUNTED: LazyLock<bool> = LazyLock::new(|| {
    let before = counted();
    // SAFETY: the mapping is new, and nothing else knows its address.
    let has_written = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(ptr::null_mut(), PAGE_BYTES, access, kind, -1, 0);
        let is_there = page != libc::MAP_FAILED;
        if is_there {
            page.cast::<u8>().write_volatile(1);
            libc::munmap(page, PAGE_BYTES);
        }
        is_there
    };
    has_written && counted() > before
});

/// The page faults that the calling thread has had. None if the kernel does not count them.
pub fn thread_faults() -> Option<u64> {
    ARE_COUNTED.then(counted)
}

fn counted() -> u64 {
    // SAFETY: all fields are numbers, and the kernel writes to a struct that is as long as its own.
    let usage = unsafe {
        let mut usage: libc::rusage = zeroed();
        // Otherwise no page fault would be counted.
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0, "no usage of a thread");
        usage
    };
    (usage.ru_minflt as u64).wrapping_add(usage.ru_majflt as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_writes_to_pages_are_counted() {
        let before = thread_faults().expect("this kernel counts");
        // So much comes from the kernel itself.
        let memory = vec![1_u8; 64 << 20];
        assert!(thread_faults() > Some(before), "{}", memory.len());
    }
}
