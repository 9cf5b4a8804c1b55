//! Makes a component of a core module that carries its component type.
//!
//! wit-component does it. Of its result `join_shim` makes one with fewer core instances, because
//! each of them takes a twentieth of the time of a short call in a fresh instance.

mod join_shim;

use wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER;
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use crate::load_error::ComponentError;

/// The module that core modules import WASI 0.1 from, as wasi-libc does. An adapter makes WASI 0.2
/// of it.
const WASI_1: &str = "wasi_snapshot_preview1";

/// The component of `module`. It is not validated.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>, ComponentError> {
    let (has_type, needs_wasi_1) = look_at(module)?;
    if !has_type {
        return Err(ComponentError::NoComponentType);
    }
    let encoder = ComponentEncoder::default().validate(false).module(module);
    let encoder = encoder.and_then(|encoder| match needs_wasi_1 {
        true => encoder.adapter(WASI_1, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER),
        false => Ok(encoder),
    });
    let component = encoder
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| ComponentError::Encode(format!("{error:#}")))?;
    Ok(join_shim::join_shim(&component).unwrap_or(component))
}

/// Whether a core module has its component type, and whether it imports WASI 0.1.
fn look_at(module: &[u8]) -> Result<(bool, bool), ComponentError> {
    let (mut has_type, mut needs_wasi_1) = (false, false);
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::CustomSection(section) if section.name().starts_with("component-type") => {
                has_type = true;
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    needs_wasi_1 |= import?.module == WASI_1;
                }
            }
            _ => {}
        }
    }
    Ok((has_type, needs_wasi_1))
}
