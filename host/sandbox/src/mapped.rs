//! Compiled code that this host wrote and verified: mapping it, the module with a runtime's code,
//! and the names of its functions.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use gristmill_core::{Code, Function, Functions};
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Module, Store};

use crate::runtime::CODE;

/// Map compiled code from its open file.
#[allow(unsafe_code)]
pub(crate) fn deserialize(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    // Maps the open file: its name may belong to another file by now.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: `ArtifactCache::map`, here or in the server that started this child, has found this
    // file's keyed checksum right, so that `keep` has written it from the output of
    // `precompile_component` for this engine and component. This host never writes to a file that
    // has its final name, and only this host writes to the directory.
    unsafe { Component::deserialize_file(engine, path) }
}

/// The code of a runtime, in the child that loads sources into it. The server that started the
/// child has verified the file at `path`.
pub(crate) fn code_of(engine: &Engine, path: &Path) -> io::Result<Module> {
    let file = File::open(path)?;
    let component = deserialize(engine, &file).map_err(io::Error::other)?;
    exported_code(engine, &component).map_err(io::Error::other)
}

/// The core module that the compiled component of a runtime's code exports.
pub(crate) fn exported_code(engine: &Engine, component: &Component) -> wasmtime::Result<Module> {
    let mut store = Store::new(engine, ());
    let instance = Linker::new(engine).instantiate(&mut store, component)?;
    let missing = || wasmtime::Error::msg("compiled code of a runtime exports no module");
    instance.get_module(&mut store, CODE).ok_or_else(missing)
}

/// Compiled code in this process, for profiles, under this name. A function without a name is
/// called by its number.
pub(crate) fn named_code(component: &Component, name: String) -> Code {
    let text = component.text();
    let begin = text.as_ptr() as u64;
    let (component, prefix) = (component.clone(), name.clone());
    let functions: Functions = Box::new(move |show| {
        for function in component.functions() {
            let from = begin + function.offset as u64;
            let number = || format!("{prefix}[{}]", function.index.as_u32());
            let addresses = from..from + function.len as u64;
            show(Function { addresses, name: function.name.unwrap_or_else(number) });
        }
    });
    let addresses = begin..begin + text.len() as u64;
    Code { name, addresses, functions }
}
