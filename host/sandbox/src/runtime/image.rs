//! The content of a plugin's linear memory, and the module that defines it.

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
pub(super) struct Image {
    pub(super) bytes: Vec<u8>,
}

impl Image {
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
