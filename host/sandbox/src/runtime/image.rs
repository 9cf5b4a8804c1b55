//! The content of a plugin's linear memory, and the module that defines it.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use wasm_encoder::{
    ConstExpr, DataSection, ExportKind, ExportSection, MemorySection, MemoryType, Module,
};

/// The module and the name from which a runtime's code imports its memory.
pub(super) const IMAGE: &str = "image";
pub(super) const MEMORY: &str = "memory";

/// The bytes of a page of WebAssembly.
pub(super) const WASM_PAGE: usize = 64 << 10;

/// Zeros are left out in pieces of this size: those of the processor's pages.
const PIECE: usize = 4 << 10;

/// The content of a linear memory.
#[derive(Default)]
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
}

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

/// A count of references at which Python never changes it: `_Py_IMMORTAL_INITIAL_REFCNT` of
/// CPython 3.14 where pointers have 32 bits. The count is an object's first word.
const IMMORTAL: u32 = 5 << 28;

/// The counts of objects that live and are not immortal. What was freed since begins with a pointer
/// or with 0.
const COUNTS: RangeInclusive<u32> = 1..=0xffff;

impl Image {
    /// Make the objects at these addresses immortal, so that no call writes to their pages because
    /// it uses them. An address outside of the memory is left out.
    pub(super) fn keep_objects(&mut self, addresses: &[u32]) {
        for address in addresses {
            let word = self.bytes.get_mut(*address as usize..).and_then(|rest| rest.get_mut(..4));
            let Some(word) = word else { continue };
            let count = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            if COUNTS.contains(&count) {
                word.copy_from_slice(&IMMORTAL.to_le_bytes());
            }
        }
    }

    /// Where the content stands in `code`, the compiled component. None if it is not there in one
    /// piece, page by page as in the memory.
    pub(crate) fn place_in(&self, code: &[u8]) -> Option<ContentPlace> {
        let is_empty = |piece: &[u8]| piece.iter().all(|byte| *byte == 0);
        let pieces = || self.bytes.chunks(PIECE);
        let from = pieces().position(|piece| !is_empty(piece))? * PIECE;
        let to = (pieces().len() - pieces().rev().position(|piece| !is_empty(piece))?) * PIECE;
        let content = self.bytes.get(from..to)?;
        let first = content.get(..PIECE)?;
        let is_it = |at: &usize| {
            code[*at..].starts_with(first) && code.get(*at..*at + content.len()) == Some(content)
        };
        let at = (0..code.len()).step_by(PIECE).find(is_it)?;
        let (in_file, in_memory, bytes) = (at as u64, from as u64, content.len() as u64);
        Some(ContentPlace { in_file, in_memory, bytes })
    }

    /// The module that defines the memory.
    pub(super) fn module(&self) -> Module {
        let mut module = Module::new();
        let mut memories = MemorySection::new();
        memories.memory(memory_type(self.bytes.len().div_ceil(WASM_PAGE) as u64));
        let mut exports = ExportSection::new();
        exports.export(MEMORY, ExportKind::Memory, 0);
        module.section(&memories).section(&exports);
        let mut data = DataSection::new();
        let is_empty = |piece: &[u8]| piece.iter().all(|byte| *byte == 0);
        let mut begin = 0;
        while begin < self.bytes.len() {
            let mut end = begin;
            while end < self.bytes.len() {
                let next = (end + PIECE).min(self.bytes.len());
                if is_empty(&self.bytes[end..next]) {
                    break;
                }
                end = next;
            }
            if end > begin {
                let at = ConstExpr::i32_const(begin as u32 as i32);
                data.active(0, &at, self.bytes[begin..end].iter().copied());
            }
            begin = end.max(begin + PIECE) / PIECE * PIECE;
        }
        module.section(&data);
        module
    }
}

/// The type of a memory with at least so many pages.
pub(super) fn memory_type(minimum: u64) -> MemoryType {
    MemoryType { minimum, maximum: None, memory64: false, shared: false, page_size_log2: None }
}
