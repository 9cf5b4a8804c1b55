//! What a plugin may ask of the host, one file an interface.

mod image;
mod log;
mod tensors;
mod types;

use wasmtime::component::{HasSelf, Linker};

use crate::bindings;
use crate::call::CallState;

/// Link every interface. `tensor.create` is linked by hand, over the generated one: it reads the
/// guest's memory in place, where the generated one would copy it into a `Vec` first.
pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    bindings::Imports::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    linker.allow_shadowing(true);
    tensors::link_create(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}

impl bindings::prepare::Host for CallState {}

/// The part of `bytes` that `read(offset, length)` asks for.
fn window(bytes: &[u8], offset: u64, length: u64) -> &[u8] {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len() - start);
    &bytes[start..start + length]
}
