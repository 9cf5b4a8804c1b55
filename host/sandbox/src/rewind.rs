//! Making a guest fresh again: its memory gets the content that it began with.
//!
//! A guest whose plugin shares a runtime has all of its state in one linear memory
//! (`runtime::main_module` refuses any other). Making such a guest takes longer than most calls, and
//! its first writes to each page cost a page fault. To rewind it takes neither.
//!
//! The kernel knows which pages were written since they were mapped: they are no longer pages of the
//! compiled file. These get their content again, from the same file. So a call in a guest that was
//! rewound sees what it would see in a new one, down to the last byte.
//!
//! Invariants: a guest is rewound only
//! - after a call that ended without a trap and without reaching a limit;
//! - if its memory has not grown, and it keeps no resource of the host;
//! - for the same pipeline and the same version of the plugin.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, LazyLock};

use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, Instance, WasmList};

use crate::capability::{StoreData, wasi};
use crate::runtime::{MEMORY_PAIR, READ_MEMORY};

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

/// Where in the compiled file the content is with which a memory begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContentPlace {
    /// The first byte in the file.
    pub(crate) in_file: u64,
    /// The first byte in the memory.
    pub(crate) in_memory: u64,
    /// The length. The rest of the memory is 0.
    pub(crate) bytes: u64,
}

/// The content with which the memories of a plugin's guests begin.
pub(crate) struct FirstContent {
    content: Mmap,
    /// The export that gives the memory.
    reader: ComponentExportIndex,
    /// Where in the memory it is.
    place: Range<usize>,
    memory_bytes: usize,
}

/// The memory of one guest, and the content that it began with.
pub(crate) struct Rewind {
    first: Arc<FirstContent>,
    /// The address of the memory, which stays where it is as long as the guest lives.
    memory: usize,
}

impl FirstContent {
    /// The content at this place of a verified file, for memories of `memory_bytes`. None if the
    /// kernel does not say which pages were written.
    #[allow(unsafe_code)]
    pub(crate) fn of(
        file: &File,
        component: &Component,
        place: ContentPlace,
        memory_bytes: u64,
    ) -> io::Result<Option<Arc<Self>>> {
        let ContentPlace { in_file, in_memory, bytes } = place;
        let end = in_memory.checked_add(bytes).filter(|end| *end <= memory_bytes);
        let is_aligned =
            [in_memory, bytes, memory_bytes].iter().all(|at| at % PAGE_BYTES as u64 == 0);
        let (Some(end), true) = (end, is_aligned) else {
            return Err(io::Error::other("the memory's content has a wrong place"));
        };
        let reader = component.get_export_index(None, READ_MEMORY);
        let has_page_map = PAGE_MAP.is_some() && rustix::param::page_size() == PAGE_BYTES;
        let Some(reader) = reader.filter(|_| has_page_map) else { return Ok(None) };
        if in_file
            .checked_add(bytes)
            .is_none_or(|end| file.metadata().is_ok_and(|it| it.len() < end))
        {
            return Err(io::Error::other("the memory's content is not in the file"));
        }
        // SAFETY: the caller has verified the file, and nobody writes to it (`artifact`).
        let content =
            unsafe { memmap2::MmapOptions::new().offset(in_file).len(bytes as usize).map(file)? };
        let (place, memory_bytes) = (in_memory as usize..end as usize, memory_bytes as usize);
        Ok(Some(Arc::new(Self { content, reader, place, memory_bytes })))
    }

    /// The content of a page, if it is not 0.
    fn page(&self, at: usize) -> Option<&[u8]> {
        let from = at.checked_sub(self.place.start)?;
        self.content.get(from..from + PAGE_BYTES)
    }
}

impl Rewind {
    /// Of a new guest. None if its memory is not as large as it should be.
    pub(crate) async fn of(
        first: &Arc<FirstContent>,
        store: &mut Store<StoreData>,
        instance: &Instance,
    ) -> wasmtime::Result<Option<Self>> {
        let read = instance.get_typed_func::<(), (WasmList<u8>,)>(&mut *store, &first.reader)?;
        let (memory,) = read.call_async(&mut *store, ()).await?;
        let memory = memory.as_le_slice(&*store);
        if memory.len() != first.memory_bytes {
            return Ok(None);
        }
        let rewind = Self { first: first.clone(), memory: memory.as_ptr().expose_provenance() };
        // The reader has left its answer there.
        rewind.restore(store, MEMORY_PAIR as usize / PAGE_BYTES * PAGE_BYTES);
        Ok(Some(rewind))
    }

    /// Give the memory of the guest in `store` the content that it began with. False if it has to be
    /// dropped instead.
    pub(crate) fn rewind(&self, store: &mut Store<StoreData>) -> bool {
        let state = store.data_mut();
        let has_grown = state.limiter.memory_bytes() != self.first.memory_bytes;
        let wasi: &mut wasi::CapabilityState = state.states.as_mut();
        if has_grown || !wasi.forget() || state.keeps_resources() {
            return false;
        }
        let Some(Ok(written)) = self.written() else { return false };
        if written.len() * PAGE_BYTES > WRITTEN_BYTES_MAX {
            return false;
        }
        written.into_iter().for_each(|at| self.restore(store, at));
        true
    }

    /// The pages that were written. None if the kernel does not tell.
    fn written(&self) -> Option<io::Result<Vec<usize>>> {
        let page_map = PAGE_MAP.as_ref()?;
        let mut entries = vec![0; self.first.memory_bytes / PAGE_BYTES * ENTRY_BYTES];
        let begin = (self.memory / PAGE_BYTES * ENTRY_BYTES) as u64;
        if let Err(error) = page_map.read_exact_at(&mut entries, begin) {
            return Some(Err(error));
        }
        let entries = entries.as_chunks::<ENTRY_BYTES>().0.iter().enumerate();
        let written = entries.filter(|(_, entry)| {
            let entry = u64::from_le_bytes(**entry);
            entry & SWAPPED != 0 || entry & (PRESENT | OF_FILE) == PRESENT
        });
        Some(Ok(written.map(|(page, _)| page * PAGE_BYTES).collect()))
    }

    /// Give the page at `at` of the memory its first content.
    #[allow(unsafe_code)]
    fn restore(&self, _: &mut Store<StoreData>, at: usize) {
        assert!(at + PAGE_BYTES <= self.first.memory_bytes, "the page is not in the memory");
        // SAFETY: the page lies in the guest's memory, which the pool keeps mapped and in its place
        // until the store is dropped, also while it grows. The store is borrowed, so no guest runs
        // in it, and nobody else has a reference to its memory.
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
