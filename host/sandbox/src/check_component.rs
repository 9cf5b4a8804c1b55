//! Checks an uploaded file: the result is a component, or a sentence that says what is wrong.
//!
//! Accepts a component, or a core module with its component type, which it encodes as a component.
//! It only reads the file: nothing is compiled and nothing runs here. A server does this in the
//! child that compiles the file; the server itself looks only at the file's first bytes. The
//! command line does it in a child, too (`check_job`): the library that reads types recurses until
//! its stack is at its end if they name each other, which ends a process.

use gristmill_core::PluginLimits;
use serde::{Deserialize, Serialize};
use wasmparser::{
    CanonicalFunction, CanonicalOption, ComponentTypeRef, Encoding, KnownCustom, Name,
    NameSectionReader, Parser, Payload, Validator, WasmFeatures,
};

use crate::capability::wasi::is_wasi;
use crate::capability::{interfaces, is_provided};
use crate::count::{Needs, needs_of};
use crate::encode::encode;
use crate::init;
use crate::limiter::{MEMORIES_PER_CALL, TABLES_PER_CALL};
use crate::load_error::ComponentError;
use crate::runtime::is_archive;
use crate::worlds::{Contract, Roles};

/// Maximum code of one function, in bytes. A function of that size without a loop runs for some
/// milliseconds without an interruption.
const FUNCTION_BYTES_MAX: usize = 1 << 20;

/// Maximum name of a function, in bytes. A trap copies the names of the innermost functions.
const FUNCTION_NAME_BYTES_MAX: usize = 64 << 10;

/// A component that names only known imports and exports what a pipeline can call.
#[derive(Debug, Serialize, Deserialize)]
pub struct CheckedComponent {
    /// The component's binary, which is not in a document about it.
    #[serde(skip)]
    pub component: Vec<u8>,
    /// The interfaces it imports.
    pub imports: Vec<String>,
    /// The names it exports.
    pub exports: Vec<String>,
    /// The roles that its exports give it.
    pub roles: Roles,
    /// The needs of one instance of it.
    pub needs: Needs,
}

impl CheckedComponent {
    /// The version of the contract that it was built for, such as 0.3.
    pub fn contract(&self) -> &'static str {
        // Components of several contracts are refused.
        Contract::of_imports(&self.imports).map_or("", Contract::version)
    }

    /// Whether it exports `init`, which runs once, at upload.
    pub fn has_init(&self) -> bool {
        self.exports.iter().any(|export| export == init::EXPORT)
    }
}

/// The most that an instance of a component may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bounds {
    /// Instances of core modules.
    pub(crate) instances: u64,
    /// Memories of its own.
    pub(crate) memories: u64,
    /// Tables of its own.
    pub(crate) tables: u64,
}

impl Bounds {
    /// The bounds of a host whose plugins may have `instances_max` core module instances.
    pub(crate) fn new(instances_max: u32) -> Self {
        Self {
            instances: instances_max.into(),
            memories: MEMORIES_PER_CALL.into(),
            tables: TABLES_PER_CALL.into(),
        }
    }
}

/// Look at a file that is to be uploaded, for a host with the default limits.
///
/// # Errors
/// Each says in a sentence what is wrong with the file and how to mend it.
pub fn check_component(file: &[u8]) -> Result<CheckedComponent, ComponentError> {
    check_within(file, &Bounds::new(PluginLimits::default().instances as u32))
}

/// Check that the file begins like a component, a core module or an archive of sources.
pub(crate) fn check_head(file: &[u8]) -> Result<(), ComponentError> {
    if Parser::is_component(file) || Parser::is_core_wasm(file) || is_archive(file) {
        return Ok(());
    }
    let head: Vec<_> = file.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let head = if head.is_empty() { "nothing at all".into() } else { head.join(" ") };
    Err(ComponentError::NotWasm(head))
}

/// Look at an uploaded file, for a host with these bounds.
pub(crate) fn check_within(
    file: &[u8],
    bounds: &Bounds,
) -> Result<CheckedComponent, ComponentError> {
    if is_archive(file) {
        return Err(ComponentError::Archive);
    }
    check_head(file)?;
    let component = if Parser::is_component(file) { file.to_vec() } else { encode(file)? };
    Validator::new_with_features(WasmFeatures::default()).validate_all(&component)?;
    let (imports, exports) = border_of(&component)?;
    let unknown: Vec<_> = imports.iter().filter(|name| !is_provided(name)).cloned().collect();
    if unknown.iter().any(|name| is_wasi(name)) {
        return Err(ComponentError::RefusedWasi(unknown));
    }
    if !unknown.is_empty() {
        let allowed = interfaces().map(str::to_owned).collect();
        return Err(ComponentError::UnknownImports { unknown, allowed });
    }
    Contract::of_imports(&imports).ok_or(ComponentError::SeveralContracts)?;
    let Some(roles) = Roles::of_exports(&exports) else {
        let exported =
            if exports.is_empty() { "it exports nothing".into() } else { exports.join(", ") };
        return Err(ComponentError::NoWorld(exported));
    };
    let needs = needs_of(&component)?;
    check_needs(&needs, bounds)?;
    check_code(&component)?;
    Ok(CheckedComponent { component, imports, exports, roles, needs })
}

fn check_needs(needs: &Needs, bounds: &Bounds) -> Result<(), ComponentError> {
    let compared = [
        ("core module instances", needs.instances, bounds.instances, " (plugin_instances)"),
        ("memories", needs.memories, bounds.memories, ""),
        ("tables", needs.tables, bounds.tables, ""),
    ];
    match compared.into_iter().find(|(_, count, limit, _)| count > limit) {
        Some((what, count, limit, setting)) => {
            Err(ComponentError::TooMany { what, count, limit, setting })
        }
        None => Ok(()),
    }
}

/// Refuse code that would hold up a serving thread: functions that run long without an
/// interruption or whose names are long, and texts that the host would have to decode character by
/// character.
fn check_code(component: &[u8]) -> Result<(), ComponentError> {
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::CodeSectionEntry(body) if body.range().len() > FUNCTION_BYTES_MAX => {
                let (bytes, limit) = (body.range().len(), FUNCTION_BYTES_MAX);
                return Err(ComponentError::LongFunction { bytes, limit });
            }
            Payload::CustomSection(section) => {
                let KnownCustom::Name(names) = section.as_known() else { continue };
                let bytes = longest_name(names);
                if bytes > FUNCTION_NAME_BYTES_MAX {
                    let limit = FUNCTION_NAME_BYTES_MAX;
                    return Err(ComponentError::LongFunctionName { bytes, limit });
                }
            }
            Payload::ComponentCanonicalSection(section) => {
                for function in section {
                    let (CanonicalFunction::Lift { options, .. }
                    | CanonicalFunction::Lower { options, .. }) = function?
                    else {
                        continue;
                    };
                    let is_wide = |option: &CanonicalOption| {
                        matches!(option, CanonicalOption::UTF16 | CanonicalOption::CompactUTF16)
                    };
                    if options.iter().any(is_wide) {
                        return Err(ComponentError::NotUtf8);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The longest name of a function, in bytes. What stands behind a fault in the section is read by
/// nobody.
fn longest_name(names: NameSectionReader<'_>) -> usize {
    let functions = names.into_iter().map_while(Result::ok).filter_map(|name| match name {
        Name::Function(names) => Some(names),
        _ => None,
    });
    let names = functions.flat_map(|names| names.into_iter().map_while(Result::ok));
    names.map(|naming| naming.name.len()).max().unwrap_or_default()
}

/// The names a component imports and exports at its outermost level.
pub(crate) fn border_of(component: &[u8]) -> Result<(Vec<String>, Vec<String>), ComponentError> {
    let (mut imports, mut exports, mut depth) = (Vec::new(), Vec::new(), 0_usize);
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::Version { encoding: Encoding::Component | Encoding::Module, .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    let import = import?;
                    // A type that a world uses is an import, too, but the host need not provide it.
                    if !matches!(import.ty, ComponentTypeRef::Type(_)) {
                        imports.push(import.name.name.to_owned());
                    }
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    exports.push(export?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok((imports, exports))
}

#[cfg(test)]
mod tests;
