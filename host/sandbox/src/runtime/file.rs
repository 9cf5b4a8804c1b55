//! The file of a runtime: a component, with its language and its library in custom sections.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use wasmparser::{Parser, Payload};

use super::archive::files_of;

/// The custom section with the standard library: a tar file.
pub(super) const LIBRARY: &str = "gristmill:library";

/// A runtime. Whoever runs the server puts the file there, so it is trusted.
pub(crate) struct RuntimeFile {
    /// The component. Custom sections do not matter to it.
    pub(super) component: Vec<u8>,
    /// The standard library by path.
    pub(super) library: Arc<BTreeMap<String, Vec<u8>>>,
}

impl RuntimeFile {
    /// Read the file.
    pub(crate) fn read(file: Vec<u8>) -> io::Result<Self> {
        let missing = || format!("the runtime's file has no section {LIBRARY}");
        let library = library_of(&file)?.ok_or_else(|| io::Error::other(missing()))?;
        Ok(Self { component: file, library: Arc::new(library) })
    }
}

fn library_of(file: &[u8]) -> io::Result<Option<BTreeMap<String, Vec<u8>>>> {
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(file) {
        match payload.map_err(io::Error::other)? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::CustomSection(section) if depth == 1 && section.name() == LIBRARY => {
                return files_of(section.data()).map(Some).map_err(io::Error::other);
            }
            _ => {}
        }
    }
    Ok(None)
}
