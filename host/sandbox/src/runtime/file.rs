//! The file of a runtime: a component, with the standard library in a custom section.

use std::collections::BTreeMap;
use std::io;

use super::archive::files_of;
use crate::sources::custom_section;

/// The custom section with the standard library: a tar file.
const LIBRARY: &str = "gristmill:library";

/// A runtime. The operator of the server puts its file there, so it is trusted.
pub(crate) struct RuntimeFile {
    /// The component. Custom sections do not matter to it.
    pub(super) component: Vec<u8>,
    /// The standard library by path.
    pub(super) library: BTreeMap<String, Vec<u8>>,
}

impl RuntimeFile {
    /// Read the file.
    pub(crate) fn read(file: Vec<u8>) -> io::Result<Self> {
        let missing = || io::Error::other(format!("the runtime's file has no section {LIBRARY}"));
        let library = custom_section(&file, LIBRARY).ok_or_else(missing)?;
        let library = files_of(library).map_err(io::Error::other)?;
        Ok(Self { component: file, library })
    }
}
