//! Runtimes of languages: an interpreter that is compiled once, and the memories of plugins.
//!
//! A runtime is a component in one file: one core module with the interpreter and the SDK, its
//! memory, and the standard library of the language ([`RuntimeFile`]). A plugin in that language is
//! an archive of its sources ([`Archive`]). When it is uploaded, the compiling child starts the
//! runtime, lets it load the sources, and keeps the memory ([`load`]). The compiled plugin is this
//! memory and the functions between component and host. Its code is the runtime's, which all
//! plugins share ([`parts`]).
//!
//! Invariants:
//! - the state of an instance is its memory. A runtime whose module has other state is refused:
//!   more than one mutable global, the pointer of the stack, or code that changes a table. Sources
//!   that leave a handle of the host open are refused, too;
//! - loading depends on the archive and the runtime alone. It has no clock, no random numbers, no
//!   files but those of the archive and the standard library.

use wasmtime::Module;
use wasmtime::component::{Linker, WasmList, WasmStr};

use crate::capability::StoreData;

mod archive;
mod file;
mod image;
mod installed;
mod load;
mod main_module;
mod parts;
mod stopped;

pub(crate) use self::archive::places_in;
pub use self::archive::{Archive, ArchiveError, Manifest, is_archive};
pub(crate) use self::file::RuntimeFile;
pub(crate) use self::image::{ContentPlace, Image};
pub(crate) use self::installed::{
    CompiledRuntime, InstalledRuntime, InstalledRuntimes, LinkedRuntime, component_in, read_runtime,
};
pub use self::installed::{RuntimeStatus, RuntimeVersion};
use self::load::{KEEP_OBJECTS, LOADING, OBJECTS, READ_FILE};
pub(crate) use self::load::{LoadSourcesError, Loaded, load};
pub(crate) use self::parts::{CODE, MEMORY_PAIR, READ_MEMORY, code_component};

/// Link what a plugin of a runtime imports besides the contract: the code, and the files that it
/// could read while it was loaded. There are none in a call.
pub(crate) fn link(linker: &mut Linker<StoreData>, code: &Module) -> wasmtime::Result<()> {
    linker.root().module(CODE, code)?;
    linker.instance(LOADING)?.func_wrap(READ_FILE, |_, (_,): (WasmStr,)| Ok((None::<Vec<u8>>,)))?;
    linker.instance(OBJECTS)?.func_wrap(KEEP_OBJECTS, |_, (_,): (WasmList<u8>,)| Ok(()))
}

/// Whether a plugin of a runtime imports this from its runtime's host functions, and not because of
/// what its sources do.
pub(crate) fn is_own_import(import: &str) -> bool {
    [CODE, LOADING, OBJECTS].contains(&import)
}
