//! Making a guest fresh again: its memory gets the content that it began with.
//!
//! A guest whose plugin shares a runtime has all of its state in one linear memory
//! (`runtime::main_module` refuses any other). Making such a guest takes longer than most calls,
//! and its first writes to each page cost a page fault. To rewind it takes neither.
//!
//! A guest's memory is mapped from the compiled file. When the guest writes to a page, the kernel
//! gives it a copy of that page, and says so in its page map. Each copy gets the content of the
//! file again. So a call in a guest that was rewound sees what it would see in a new one, down to
//! the last byte. Only the numbers of its handles to the host's objects can be others: wasmtime
//! gives them in the order in which earlier ones were given back.
//!
//! To read the page map takes longer than to restore the copies, which stay copies. To make a
//! further one the kernel needs a page fault (or a huge page, which it is told not to make here).
//! So after calls without a page fault the copies are those of the last time, and the page map is
//! not read.
//!
//! Invariants: a guest is rewound only
//! - after a call that ended without a trap and without reaching a limit;
//! - if its memory has not grown, and it keeps no resource of the host;
//! - for the same pipeline and the same version of the plugin.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, LazyLock, OnceLock};

use rustix::io::Errno;
use rustix::mm::{Advice, madvise};
use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, Instance, WasmList};

use crate::capability::{StoreData, wasi};
use crate::frames::Interpreter;
use crate::limiter::HUGE_MEMORY_BYTES;
use crate::runtime::{ContentPlace, MEMORY_PAIR, READ_MEMORY};

/// The page of the processors that this host runs on.
const PAGE_BYTES: usize = 4096;

/// A guest that has written to more than this is not rewound: that would take long.
const WRITTEN_BYTES_MAX: usize = 2 << 20;

/// The bytes of an entry of the page map, one for each page.
const ENTRY_BYTES: usize = 8;

/// Bits of an entry: the page is in memory; it is swapped out; it is of a file.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;

/// Says of each page of this process what the kernel has mapped. None if the kernel does not tell.
static PAGE_MAP: LazyLock<Option<File>> = LazyLock::new(|| File::open("/proc/self/pagemap").ok());

/// The content with which the memories of a plugin's guests begin.
pub(crate) struct FirstContent {
    /// Keeps the compiled file mapped.
    component: Component,
    /// Where in the mapped file the content is.
    in_file: usize,
    /// The export that gives the memory.
    reader: ComponentExportIndex,
    /// Where in the memory it is.
    place: Range<usize>,
    memory_bytes: usize,
    /// The interpreter that it is of. It is looked for when it is first asked for.
    interpreter: OnceLock<Option<Interpreter>>,
}

/// The memory of one guest, and the content that it began with.
pub(crate) struct Rewind {
    first: Arc<FirstContent>,
    /// The address of the memory, which stays where it is as long as the guest lives.
    memory: usize,
    /// The pages that were written when it was last rewound. None if they can be more now.
    written: Option<Vec<usize>>,
}

impl FirstContent {
    /// The content at this place of a compiled component, for memories of `memory_bytes`. None if
    /// they are huge, or if the kernel does not say which pages were written.
    pub(crate) fn of(
        component: &Component,
        place: ContentPlace,
        memory_bytes: u64,
    ) -> io::Result<Option<Arc<Self>>> {
        let ContentPlace { in_file, in_memory, bytes } = place;
        let mapped = component.image_range();
        let mapped = (mapped.end.addr() - mapped.start.addr()) as u64;
        let end = in_memory.checked_add(bytes).filter(|end| *end <= memory_bytes);
        let is_aligned =
            [in_memory, bytes, memory_bytes].iter().all(|at| at.is_multiple_of(PAGE_BYTES as u64));
        let is_in_file = in_file.checked_add(bytes).is_some_and(|end| end <= mapped);
        let Some(end) = end.filter(|_| is_aligned && is_in_file) else {
            return Err(io::Error::other("the memory's content has a wrong place"));
        };
        let reader = component.get_export_index(None, READ_MEMORY);
        let has_page_map = PAGE_MAP.is_some() && rustix::param::page_size() == PAGE_BYTES;
        let can_be = has_page_map && (memory_bytes as usize) < HUGE_MEMORY_BYTES;
        let Some(reader) = reader.filter(|_| can_be) else { return Ok(None) };
        let (component, in_file) = (component.clone(), in_file as usize);
        let (place, memory_bytes) = (in_memory as usize..end as usize, memory_bytes as usize);
        let interpreter = OnceLock::new();
        Ok(Some(Arc::new(Self { component, in_file, reader, place, memory_bytes, interpreter })))
    }

    /// The content of a page, if it is not 0.
    fn page(&self, at: usize) -> Option<&[u8]> {
        let from = at.checked_sub(self.place.start)?;
        self.content().get(from..from + PAGE_BYTES)
    }

    /// The part of the memory that is not 0.
    #[allow(unsafe_code, reason = "wasmtime gives the mapped file as pointers")]
    fn content(&self) -> &[u8] {
        // SAFETY: the content ends within the mapped file (`of`). The component keeps the file
        // mapped, and no code writes to this part of it.
        unsafe {
            let content = self.component.image_range().start.add(self.in_file);
            std::slice::from_raw_parts(content, self.place.len())
        }
    }

    fn interpreter(&self) -> Option<Interpreter> {
        *self.interpreter.get_or_init(|| Interpreter::of(self.content(), self.place.start))
    }
}

impl Rewind {
    /// Of a new guest. None if its memory is not as large as it should be, or if the kernel does
    /// not say that the reader has written to it.
    pub(crate) async fn of(
        first: &Arc<FirstContent>,
        store: &mut Store<StoreData>,
        instance: &Instance,
    ) -> wasmtime::Result<Option<Self>> {
        let read = instance.get_typed_func::<(), (WasmList<u8>,)>(&mut *store, &first.reader)?;
        // Nothing is copied.
        store.set_hostcall_fuel(usize::MAX);
        let read = read.call_async(&mut *store, ()).await;
        store.set_hostcall_fuel(store.data().limits.hostcall_bytes);
        let (memory,) = read?;
        let memory = memory.as_le_slice(&*store);
        if memory.len() != first.memory_bytes {
            return Ok(None);
        }
        let rewind = Self {
            first: first.clone(),
            memory: memory.as_ptr().expose_provenance(),
            written: None,
        };
        let answer = MEMORY_PAIR as usize / PAGE_BYTES * PAGE_BYTES;
        if !rewind.look_for_written().is_some_and(|written| written.contains(&answer)) {
            return Ok(None);
        }
        if !rewind.has_only_small_pages() {
            return Ok(None);
        }
        rewind.restore(store, answer);
        Ok(Some(rewind))
    }

    /// Forbid the kernel to make a huge page of pages of the memory, which would be written by no
    /// page fault. False if it refuses.
    #[allow(unsafe_code, reason = "wasmtime gives no access to a component's memory")]
    fn has_only_small_pages(&self) -> bool {
        let memory = std::ptr::with_exposed_provenance_mut(self.memory);
        // SAFETY: the range is the guest's memory, as in `restore`, and keeps its content.
        let outcome = unsafe { madvise(memory, self.first.memory_bytes, Advice::LinuxNoHugepage) };
        // A kernel that has no huge pages does not know the advice.
        matches!(outcome, Ok(()) | Err(Errno::INVAL))
    }

    /// Give the memory of the guest in `store` the content that it began with. Returns the bytes
    /// of it that are in memory for this guest alone; none if it has to be dropped instead.
    pub(crate) fn rewind(&mut self, store: &mut Store<StoreData>) -> Option<usize> {
        let state = store.data_mut();
        let has_grown = state.limiter.memory_bytes() != self.first.memory_bytes;
        let wasi: &mut wasi::CapabilityState = state.states.as_mut();
        if has_grown || !wasi.forget() || state.keeps_resources() {
            return None;
        }
        let written = self.written.take().or_else(|| self.look_for_written())?;
        let bytes = written.len() * PAGE_BYTES;
        if bytes > WRITTEN_BYTES_MAX {
            return None;
        }
        written.iter().for_each(|at| self.restore(store, *at));
        self.written = Some(written);
        Some(bytes)
    }

    /// Whether it can use the number of page faults in the guest's next call.
    pub(crate) fn wants_faults(&self) -> bool {
        self.written.is_some()
    }

    /// A call of the guest has ended. Its threads had so many page faults, if they were counted.
    pub(crate) fn note_call(&mut self, faults: Option<u64>) {
        if faults != Some(0) {
            self.written = None;
        }
    }

    /// The author's functions in which the guest in `store` is, the innermost one first.
    #[allow(unsafe_code, reason = "wasmtime gives no access to a component's memory")]
    pub(crate) fn functions(&self, store: &Store<StoreData>) -> Vec<String> {
        let Some(interpreter) = self.first.interpreter() else { return Vec::new() };
        let bytes = self.first.memory_bytes.max(store.data().limiter.certain_bytes());
        // SAFETY: as in `restore`. The memory had these bytes when the guest was made or when it
        // last asked for more, and never gets smaller. A guest of a runtime has no other memory.
        let memory = unsafe {
            let memory = std::ptr::with_exposed_provenance::<u8>(self.memory);
            std::slice::from_raw_parts(memory, bytes)
        };
        interpreter.functions(memory)
    }

    /// The pages that were written. None if the kernel does not tell.
    fn look_for_written(&self) -> Option<Vec<usize>> {
        let page_map = PAGE_MAP.as_ref()?;
        let mut entries = vec![0; self.first.memory_bytes / PAGE_BYTES * ENTRY_BYTES];
        let begin = (self.memory / PAGE_BYTES * ENTRY_BYTES) as u64;
        page_map.read_exact_at(&mut entries, begin).ok()?;
        let entries = entries.as_chunks::<ENTRY_BYTES>().0.iter().enumerate();
        let written = entries.filter(|(_, entry)| {
            let entry = u64::from_le_bytes(**entry);
            entry & SWAPPED != 0 || entry & (PRESENT | OF_FILE) == PRESENT
        });
        Some(written.map(|(page, _)| page * PAGE_BYTES).collect())
    }

    /// Give the page at `at` of the memory its first content.
    #[allow(unsafe_code, reason = "wasmtime gives no access to a component's memory")]
    fn restore(&self, _: &mut Store<StoreData>, at: usize) {
        assert!(at + PAGE_BYTES <= self.first.memory_bytes, "the page is not in the memory");
        // SAFETY: the page lies in the guest's memory, which the pool keeps mapped and in its place
        // until the store is dropped, also while it grows. The store is borrowed mutably, so no
        // guest runs in it, and no other reference to its memory exists.
        let page = unsafe {
            let page = std::ptr::with_exposed_provenance_mut(self.memory + at);
            std::slice::from_raw_parts_mut(page, PAGE_BYTES)
        };
        match self.first.page(at) {
            Some(content) => page.copy_from_slice(content),
            None => page.fill(0),
        }
    }
}

#[cfg(test)]
mod tests;
