//! The global allocator: it uses a static arena first, and grows the memory when the arena is full.
//!
//! Each `memory.grow` costs the host a system call, and costs other threads of the host a TLB
//! shoot-down. A fresh instance is cheap if its memory does not grow during a call. Everything is
//! aligned to 16, so that a `list<u8>` from the host can be viewed as numbers in place.

// Under WASI the C library has an allocator of its own, which expects no other one beside it.
#![cfg(all(feature = "allocator", target_arch = "wasm32", target_os = "unknown"))]

use core::alloc::{GlobalAlloc, Layout};

use talc::base::{Talc, binning::Binning};
use talc::cell::TalcSyncCell;
use talc::source::Source;
use talc::wasm::WasmBinning;

const ARENA_BYTES: usize = 192 << 10;
const ALIGNMENT: usize = 16;
const PAGE_BYTES: usize = 64 << 10;

static mut ARENA: [u8; ARENA_BYTES] = [0; ARENA_BYTES];

/// The arena first, then pages of linear memory.
#[derive(Debug)]
struct ArenaThenPages {
    arena_used: bool,
}

// SAFETY: hands out the arena once and then only pages that the memory just grew by, so no region
// is ever claimed twice; allocates nothing itself.
unsafe impl Source for ArenaThenPages {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        if !talc.source.arena_used {
            talc.source.arena_used = true;
            // SAFETY: the arena is this allocator's alone, and claimed only here, once.
            let claimed = unsafe { talc.claim((&raw mut ARENA).cast(), ARENA_BYTES) };
            return claimed.map(drop).ok_or(());
        }
        // Room for the allocation, its alignment and the allocator's own records.
        let pages = (layout.size() + layout.align() + 4 * ALIGNMENT).div_ceil(PAGE_BYTES);
        let previous = core::arch::wasm32::memory_grow::<0>(pages);
        if previous == usize::MAX {
            return Err(());
        }
        // SAFETY: these pages did not exist before, so nothing else refers to them.
        let claimed = unsafe { talc.claim((previous * PAGE_BYTES) as *mut u8, pages * PAGE_BYTES) };
        claimed.map(drop).ok_or(())
    }
}

struct Aligned(TalcSyncCell<ArenaThenPages, WasmBinning>);

fn aligned(layout: Layout) -> Layout {
    layout.align_to(ALIGNMENT).unwrap_or(layout)
}

// SAFETY: passes on to talc with a stricter alignment, the same for the same layout each time.
unsafe impl GlobalAlloc for Aligned {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promised.
        unsafe { self.0.alloc(aligned(layout)) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { self.0.dealloc(pointer, aligned(layout)) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promised.
        unsafe { self.0.realloc(pointer, aligned(layout), size) }
    }
}

#[global_allocator]
static ALLOCATOR: Aligned = Aligned(TalcSyncCell::new_wasm(ArenaThenPages { arena_used: false }));
