//! The file of a runtime: a component, with the standard library in a custom section unless the
//! language has it in its interpreter.

use std::collections::BTreeMap;
use std::io;

use super::archive::files_of;
use crate::sections::custom_section;

/// The custom section with the standard library: a tar file.
const LIBRARY: &str = "gristmill:library";

/// A runtime. The operator of the server puts its file there, so it is trusted.
pub(crate) struct RuntimeFile {
    /// The component. Custom sections do not matter to it.
    pub(super) component: Vec<u8>,
    /// The standard library by path. Empty if the interpreter has it.
    pub(super) library: BTreeMap<String, Vec<u8>>,
}

impl RuntimeFile {
    /// Read the file.
    pub(crate) fn read(file: Vec<u8>) -> io::Result<Self> {
        let library = custom_section(&file, LIBRARY).map(files_of).transpose();
        let library = library.map_err(io::Error::other)?.unwrap_or_default();
        Ok(Self { component: file, library })
    }
}
