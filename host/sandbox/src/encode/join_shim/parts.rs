//! The parts of a component that wit-component made of a module without adapters.

use std::collections::BTreeMap;
use std::ops::Range;

use wasmparser::{
    CanonicalFunction, ComponentAlias, Encoding, ExternalKind, Instance, Operator, Parser, Payload,
};

/// The order of the modules in the component.
pub(super) const MAIN: u32 = 0;
pub(super) const SHIM: u32 = 1;
pub(super) const FIXUP: u32 = 2;
const MODULES: usize = 3;

/// The name under which the fix-up finds the table.
pub(super) const TABLE: &str = "$imports";

/// The shim is instantiated first.
pub(super) const SHIM_INSTANCE: u32 = 0;

/// The parts that are joined.
pub(super) struct ShimParts<'a> {
    /// The main module.
    pub(super) main: &'a [u8],
    /// The number of the shim's functions. Each has an entry of the table, with the same number.
    pub(super) functions: u32,
    /// The main module's imports that the shim satisfies, by module and name, with the numbers of
    /// the shim's functions.
    pub(super) imports: BTreeMap<(&'a str, &'a str), u32>,
    /// The instance of the main module.
    pub(super) main_instance: u32,
    /// The component's core functions that are aliases of the shim's, in order.
    pub(super) aliases: Vec<u32>,
}

/// The component's modules and core instances, and the functions that are taken from the shim.
#[derive(Default)]
struct Read<'a> {
    modules: Vec<Range<usize>>,
    instances: Vec<Instance<'a>>,
    /// The numbers of the shim's functions, by the indices of the component's core functions.
    shim_functions: BTreeMap<u32, u32>,
    /// The number of core functions so far.
    functions: u32,
    /// Whether the shim's table has an alias after the main module's instance.
    has_table: bool,
}

impl<'a> ShimParts<'a> {
    pub(super) fn of(component: &'a [u8]) -> Option<Self> {
        let read = Read::of(component)?;
        let [main, shim, _] = &read.modules[..] else { return None };
        let shim_instance = read.only_instance_of(SHIM)?;
        let main_instance = read.only_instance_of(MAIN)?;
        read.only_instance_of(FIXUP)?;
        if shim_instance != SHIM_INSTANCE || !read.has_table {
            return None;
        }
        let Instance::Instantiate { args, .. } = read.instances.get(main_instance as usize)? else {
            return None;
        };
        let mut imports = BTreeMap::new();
        for arg in args {
            let Instance::FromExports(exports) = read.instances.get(arg.index as usize)? else {
                return None;
            };
            for export in exports.iter().filter(|export| export.kind == ExternalKind::Func) {
                if let Some(function) = read.shim_functions.get(&export.index) {
                    imports.insert((arg.name, export.name), *function);
                }
            }
        }
        let functions = functions_of(component.get(shim.clone())?)?;
        if read.shim_functions.values().any(|function| *function >= functions) {
            return None;
        }
        let main = component.get(main.clone())?;
        let aliases = read.shim_functions.into_keys().collect();
        Some(Self { main, functions, imports, main_instance, aliases })
    }
}

impl<'a> Read<'a> {
    fn of(component: &'a [u8]) -> Option<Self> {
        let (mut read, mut depth) = (Self::default(), 0_usize);
        for payload in Parser::new(0).parse_all(component) {
            match payload.ok()? {
                Payload::Version { encoding, .. } => {
                    if depth > 0 && encoding == Encoding::Component {
                        return None;
                    }
                    depth += 1;
                }
                Payload::End(_) => depth -= 1,
                Payload::ModuleSection { unchecked_range, .. } => {
                    read.modules.push(unchecked_range);
                }
                Payload::InstanceSection(section) => {
                    for instance in section {
                        read.instances.push(instance.ok()?);
                    }
                }
                Payload::ComponentCanonicalSection(section) => {
                    for function in section {
                        let is_core = !matches!(function.ok()?, CanonicalFunction::Lift { .. });
                        read.functions += u32::from(is_core);
                    }
                }
                Payload::ComponentAliasSection(section) => {
                    for alias in section {
                        read.alias(&alias.ok()?)?;
                    }
                }
                _ => {}
            }
        }
        (read.modules.len() == MODULES).then_some(read)
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) -> Option<()> {
        let ComponentAlias::CoreInstanceExport { kind, instance_index, name } = alias else {
            return Some(());
        };
        let is_shims = *instance_index == SHIM_INSTANCE;
        match kind {
            ExternalKind::Func => {
                if is_shims {
                    self.shim_functions.insert(self.functions, name.parse().ok()?);
                }
                self.functions += 1;
            }
            ExternalKind::Table if is_shims => {
                self.has_table = *name == TABLE && self.only_instance_of(MAIN).is_some();
            }
            _ if is_shims => return None,
            _ => {}
        }
        Some(())
    }

    /// The instance of a module, if there is just one.
    fn only_instance_of(&self, module: u32) -> Option<u32> {
        let is_its = |instance: &Instance<'_>| {
            let Instance::Instantiate { module_index, .. } = instance else { return false };
            *module_index == module
        };
        let mut indices = (0..).zip(&self.instances).filter(|(_, instance)| is_its(instance));
        let (index, _) = indices.next()?;
        indices.next().is_none().then_some(index)
    }
}

/// The number of the shim's functions, if each of them only calls the entry of the table that has
/// its number.
fn functions_of(shim: &[u8]) -> Option<u32> {
    let (mut exported, mut bodies) = (0, 0);
    for payload in Parser::new(0).parse_all(shim) {
        match payload.ok()? {
            Payload::ImportSection(_) | Payload::StartSection { .. } => return None,
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export.ok()?;
                    match export.kind {
                        ExternalKind::Func if export.name == export.index.to_string() => {
                            exported += 1;
                        }
                        ExternalKind::Table if export.name == TABLE => {}
                        _ => return None,
                    }
                }
            }
            Payload::CodeSectionEntry(body) => {
                let (mut operators, mut number) = (body.get_operators_reader().ok()?, None);
                while !operators.eof() {
                    match operators.read().ok()? {
                        Operator::LocalGet { .. } | Operator::End => {}
                        Operator::I32Const { value } => number = u32::try_from(value).ok(),
                        Operator::CallIndirect { table_index: 0, .. } if number == Some(bodies) => {
                        }
                        _ => return None,
                    }
                }
                bodies += 1;
            }
            _ => {}
        }
    }
    (exported == bodies && bodies > 0).then_some(bodies)
}
