//! Three steps of building a language's runtime, which `cargo xtask runtimes` runs.
//!
//! `flatten COMPONENT FOLDER` takes a component apart: it writes a module for each of its core
//! instances, with imports that name the instances, so that wasm-merge can make one module of them.
//! It prints the files and the names. `cut MODULE OUT` leaves only the exports of the merged module
//! that its component needs. `finish COMPONENT MODULE OUT` moves the variables of the merged and
//! optimised module into its memory, and makes the runtime's file, with the standard library if a
//! fourth argument names its archive.

mod moved;

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{
    ComponentSection, CustomSection, EntityType, ExportSection, ImportSection, Module,
};
use wasmparser::{CanonicalFunction, ComponentAlias, ExternalKind, Instance, Parser, Payload};
use wit_component::{ComponentEncoder, DecodedWasm, StringEncoding};
use wit_parser::WorldKey;

use self::moved::Moved;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The exports of the merged module that the component needs, besides those that end a call.
const EXPORTS: [&str; 6] =
    ["cabi_realloc", "memory", "load", "preprocess", "postprocess", "handle"];

/// The section in which the sandbox looks for the standard library.
const LIBRARY: &str = "gristmill:library";

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["flatten", component, folder] => flatten(component, Path::new(folder)),
        ["cut", module, out] => cut(module, out),
        ["finish", component, module, out] => finish(component, module, out, None),
        ["finish", component, module, out, library] => {
            finish(component, module, out, Some(library))
        }
        _ => {
            Err("usage: runtime flatten COMPONENT FOLDER | cut MODULE OUT | finish COMPONENT MODULE OUT [LIBRARY]"
                .into())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Where an item of a component's core level comes from.
#[derive(Clone)]
enum Item {
    /// An instance's export.
    Export(u32, String),
    /// The host.
    Host,
}

enum CoreInstance {
    OfModule { module: usize, arguments: HashMap<String, u32> },
    OfExports(HashMap<String, (ExternalKind, u32)>),
}

/// The core level of a component.
#[derive(Default)]
struct Core<'a> {
    modules: Vec<&'a [u8]>,
    instances: Vec<CoreInstance>,
    functions: Vec<Item>,
    globals: Vec<Item>,
    tables: Vec<Item>,
    memories: Vec<Item>,
    /// Instances of shims, and the instance that has what they forward to.
    shims: HashMap<u32, u32>,
    /// Instances that fill the shims.
    fillers: BTreeSet<u32>,
}

impl<'a> Core<'a> {
    fn of(component: &'a [u8]) -> Result<Self> {
        let (mut core, mut depth) = (Self::default(), 0_usize);
        for payload in Parser::new(0).parse_all(component) {
            match payload? {
                Payload::ModuleSection { unchecked_range, .. } if depth == 1 => {
                    let range = unchecked_range.start..unchecked_range.end;
                    core.modules.push(&component[range]);
                }
                Payload::Version { .. } => depth += 1,
                Payload::End(_) => depth -= 1,
                Payload::InstanceSection(section) if depth == 1 => {
                    for instance in section {
                        core.instances.push(match instance? {
                            Instance::Instantiate { module_index, args } => {
                                let argument =
                                    args.iter().map(|arg| (arg.name.to_owned(), arg.index));
                                let arguments = argument.collect();
                                CoreInstance::OfModule { module: module_index as usize, arguments }
                            }
                            Instance::FromExports(exports) => {
                                let export = |export: &wasmparser::Export<'_>| {
                                    (export.name.to_owned(), (export.kind, export.index))
                                };
                                CoreInstance::OfExports(exports.iter().map(export).collect())
                            }
                        });
                    }
                }
                Payload::ComponentAliasSection(section) if depth == 1 => {
                    for alias in section {
                        let alias = alias?;
                        let ComponentAlias::CoreInstanceExport { kind, instance_index, name } =
                            alias
                        else {
                            continue;
                        };
                        core.items(kind)?.push(Item::Export(instance_index, name.to_owned()));
                    }
                }
                Payload::ComponentCanonicalSection(section) if depth == 1 => {
                    for function in section {
                        if !matches!(function?, CanonicalFunction::Lift { .. }) {
                            core.functions.push(Item::Host);
                        }
                    }
                }
                _ => {}
            }
        }
        core.find_shims()?;
        Ok(core)
    }

    fn items(&mut self, kind: ExternalKind) -> Result<&mut Vec<Item>> {
        match kind {
            ExternalKind::Func => Ok(&mut self.functions),
            ExternalKind::Global => Ok(&mut self.globals),
            ExternalKind::Table => Ok(&mut self.tables),
            ExternalKind::Memory => Ok(&mut self.memories),
            other => Err(format!("the component has a {other:?}").into()),
        }
    }

    /// wit-component lets modules call the host through a table that is filled later. Its filler is
    /// the only instance with an argument without a name.
    fn find_shims(&mut self) -> Result<()> {
        for (index, instance) in self.instances.iter().enumerate() {
            let CoreInstance::OfModule { arguments, .. } = instance else { continue };
            let Some(&filled) = arguments.get("") else { continue };
            let CoreInstance::OfExports(exports) = &self.instances[filled as usize] else {
                return Err("a shim is not filled from exports".into());
            };
            let table = exports.get("$imports").map(|(_, table)| &self.tables[*table as usize]);
            let Some(Item::Export(shim, _)) = table else {
                return Err("a shim has no table".into());
            };
            self.shims.insert(*shim, filled);
            self.fillers.insert(index as u32);
        }
        Ok(())
    }

    /// Where the export `name` of an instance really comes from.
    fn find(&self, instance: u32, name: &str) -> Result<Item> {
        let instance = self.shims.get(&instance).copied().unwrap_or(instance);
        let CoreInstance::OfExports(exports) = &self.instances[instance as usize] else {
            return Ok(Item::Export(instance, name.to_owned()));
        };
        let missing = || format!("instance {instance} has no export {name:?}");
        let (kind, index) = exports.get(name).ok_or_else(missing)?;
        let items = match kind {
            ExternalKind::Func => &self.functions,
            ExternalKind::Global => &self.globals,
            ExternalKind::Table => &self.tables,
            ExternalKind::Memory => &self.memories,
            other => return Err(format!("instance {instance} exports a {other:?}").into()),
        };
        match &items[*index as usize] {
            Item::Host => Ok(Item::Host),
            Item::Export(instance, name) => self.find(*instance, name),
        }
    }
}

fn flatten(component: &str, folder: &Path) -> Result<()> {
    let component = fs::read(component)?;
    let core = Core::of(&component)?;
    fs::create_dir_all(folder)?;
    let mut written = Vec::new();
    for (index, instance) in core.instances.iter().enumerate() {
        let index = index as u32;
        let CoreInstance::OfModule { module, arguments } = instance else { continue };
        if core.fillers.contains(&index) || core.shims.contains_key(&index) {
            continue;
        }
        let module = core.modules[*module];
        let mut renamed = Renamed { core: &core, arguments, failed: None };
        let out = rewritten(&mut renamed, module)?;
        if let Some(error) = renamed.failed {
            return Err(error);
        }
        let file = folder.join(format!("i{index}.wasm"));
        fs::write(&file, out)?;
        // The exports of the first module keep their names, so it is the one of the plugin's world.
        let is_world = exports_of(module)?.iter().any(|name| name == "cabi_post_preprocess");
        written.push((!is_world, index, file));
    }
    written.sort();
    for (_, index, file) in written {
        println!("{}\ni{index}", file.display());
    }
    Ok(())
}

fn exports_of(module: &[u8]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::ExportSection(section) = payload? {
            for export in section {
                names.push(export?.name.to_owned());
            }
        }
    }
    Ok(names)
}

/// Writes a module whose imports name the instances that they come from.
struct Renamed<'a> {
    core: &'a Core<'a>,
    arguments: &'a HashMap<String, u32>,
    failed: Option<Box<dyn std::error::Error>>,
}

impl Reencode for Renamed<'_> {
    type Error = Infallible;

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: wasmparser::ImportSectionReader<'_>,
    ) -> std::result::Result<(), Error<Infallible>> {
        for import in section.into_imports() {
            let import = import.map_err(Error::ParseError)?;
            let (module, name) = (import.module, import.name);
            let ty: EntityType = self.entity_type(import.ty)?;
            let item = match self.arguments.get(module) {
                Some(instance) => self.core.find(*instance, name),
                None => Err(format!("no argument {module:?}").into()),
            };
            match item {
                Ok(Item::Host) => _ = imports.import(module, name, ty),
                Ok(Item::Export(instance, name)) => {
                    imports.import(&format!("i{instance}"), &name, ty);
                }
                Err(error) => self.failed = Some(error),
            }
        }
        Ok(())
    }
}

/// Writes a module with the exports that its component needs.
struct NeededExports;

impl Reencode for NeededExports {
    type Error = Infallible;

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: wasmparser::ExportSectionReader<'_>,
    ) -> std::result::Result<(), Error<Infallible>> {
        for export in section {
            let export = export.map_err(Error::ParseError)?;
            let name = export.name.strip_prefix("cabi_post_").unwrap_or(export.name);
            if EXPORTS.contains(&name) {
                exports.export(export.name, export.kind.into(), export.index);
            }
        }
        Ok(())
    }
}

fn cut(module: &str, out: &str) -> Result<()> {
    Ok(fs::write(out, rewritten(&mut NeededExports, &fs::read(module)?)?)?)
}

/// The module as `reencode` writes it.
fn rewritten(reencode: &mut impl Reencode<Error = Infallible>, module: &[u8]) -> Result<Vec<u8>> {
    let mut out = Module::new();
    reencode
        .parse_core_module(&mut out, Parser::new(0), module)
        .map_err(|error| format!("{error:?}"))?;
    Ok(out.finish())
}

fn finish(component: &str, module: &str, out: &str, library: Option<&str>) -> Result<()> {
    let (component, module) = (fs::read(component)?, fs::read(module)?);
    let mut module = rewritten(&mut Moved::of(&module)?, &module)?;
    let DecodedWasm::Component(mut resolve, world) = wit_component::decode(&component)? else {
        return Err("the file is not a component".into());
    };
    // What the tools of the language call at build time.
    let is_kept =
        |key: &WorldKey| matches!(key, WorldKey::Name(name) if EXPORTS.contains(&&**name));
    resolve.worlds[world].exports.retain(|key, _| is_kept(key));
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    let mut runtime = ComponentEncoder::default().validate(true).module(&module)?.encode()?;
    if let Some(library) = library {
        let data = fs::read(library)?.into();
        CustomSection { name: LIBRARY.into(), data }.append_to_component(&mut runtime);
    }
    Ok(fs::write(out, runtime)?)
}
