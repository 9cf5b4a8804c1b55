//! Parts that all modules have which are assembled by hand.

use std::path::Path;

use wasm_encoder::{MemoryType, RefType, TableType};
use wit_component::StringEncoding;
use wit_parser::Resolve;

/// The module with the component type of these worlds behind it. `wit` is the contract's folder
/// below `wit/`.
pub(crate) fn with_type(
    mut module: Vec<u8>,
    wit: &str,
    worlds: &[&str],
    encoding: StringEncoding,
) -> Vec<u8> {
    let mut resolve = Resolve::new();
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit").join(wit);
    let (package, _) = resolve.push_path(wit).unwrap();
    for world in worlds {
        let world = resolve.select_world(&[package], Some(world)).unwrap();
        wit_component::embed_component_metadata(&mut module, &resolve, world, encoding).unwrap();
    }
    module
}

/// A memory that begins with so many pages.
pub(crate) fn memory(pages: u64) -> MemoryType {
    MemoryType {
        minimum: pages,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    }
}

/// A table for one function.
pub(crate) fn table() -> TableType {
    TableType {
        element_type: RefType::FUNCREF,
        minimum: 1,
        maximum: None,
        table64: false,
        shared: false,
    }
}
