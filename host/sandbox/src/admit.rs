//! From an uploaded file to a component, or to a sentence that says what is wrong with it.
//!
//! Takes a component as it is, and a core module that carries its component type, which it encodes.
//! Looks only at the file: nothing is compiled and nothing runs here.

use wasmparser::{ComponentTypeRef, Encoding, Parser, Payload, Validator, WasmFeatures};
use wit_component::ComponentEncoder;

use crate::AdmitError;
use crate::plugin::Roles;

/// Interfaces a plugin may import.
const KNOWN_IMPORTS: [&str; 5] = [
    "gristmill:plugin/types@0.1.0",
    "gristmill:plugin/tensors@0.1.0",
    "gristmill:plugin/image@0.1.0",
    "gristmill:plugin/log@0.1.0",
    "gristmill:plugin/prepare@0.1.0",
];

/// A component that names only known imports and exports what a pipeline can call.
#[derive(Debug)]
pub struct Admitted {
    /// The component's binary.
    pub component: Vec<u8>,
    /// The interfaces it imports.
    pub imports: Vec<String>,
    /// What it exports.
    pub roles: Roles,
}

/// Look at an uploaded file.
pub fn admit(file: &[u8]) -> Result<Admitted, AdmitError> {
    let component = if Parser::is_component(file) {
        file.to_vec()
    } else if Parser::is_core_wasm(file) {
        encode(file)?
    } else {
        let head: Vec<_> = file.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let head = if head.is_empty() { "nothing at all".into() } else { head.join(" ") };
        return Err(AdmitError::NotWasm(head));
    };
    Validator::new_with_features(WasmFeatures::default())
        .validate_all(&component)
        .map_err(|error| AdmitError::Invalid(error.to_string()))?;
    let (imports, exports) = border_of(&component)?;
    let unknown: Vec<_> =
        imports.iter().filter(|name| !KNOWN_IMPORTS.contains(&name.as_str())).cloned().collect();
    if !unknown.is_empty() {
        let known = KNOWN_IMPORTS.map(str::to_owned).to_vec();
        return Err(AdmitError::UnknownImports { unknown, known });
    }
    let exported = |name: &str| exports.iter().any(|export| export == name);
    let roles = Roles { pre: exported("preprocess"), post: exported("postprocess") };
    if !roles.pre && !roles.post {
        let found =
            if exports.is_empty() { "it exports nothing".into() } else { exports.join(", ") };
        return Err(AdmitError::NoWorld(found));
    }
    Ok(Admitted { component, imports, roles })
}

fn encode(module: &[u8]) -> Result<Vec<u8>, AdmitError> {
    if !has_component_type(module)? {
        return Err(AdmitError::NoComponentType);
    }
    ComponentEncoder::default()
        .validate(false)
        .module(module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| AdmitError::Encode(format!("{error:#}")))
}

fn has_component_type(module: &[u8]) -> Result<bool, AdmitError> {
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(|error| AdmitError::Invalid(error.to_string()))? {
            Payload::CustomSection(section) if section.name().starts_with("component-type") => {
                return Ok(true);
            }
            _ => {}
        }
    }
    Ok(false)
}

/// The names a component imports and exports at its outermost level.
fn border_of(component: &[u8]) -> Result<(Vec<String>, Vec<String>), AdmitError> {
    let invalid = |error: wasmparser::BinaryReaderError| AdmitError::Invalid(error.to_string());
    let (mut imports, mut exports, mut depth) = (Vec::new(), Vec::new(), 0_usize);
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(invalid)? {
            Payload::Version { encoding: Encoding::Component | Encoding::Module, .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    let import = import.map_err(invalid)?;
                    // A type that a world uses is imported too, but nothing has to provide it.
                    if !matches!(import.ty, ComponentTypeRef::Type(_)) {
                        imports.push(import.name.name.to_owned());
                    }
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    exports.push(export.map_err(invalid)?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok((imports, exports))
}
