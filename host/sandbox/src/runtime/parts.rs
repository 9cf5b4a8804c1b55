//! A runtime's component in parts: its code, which is compiled once, and components around
//! memories.
//!
//! The component has one main module, the first, which defines the memory, and modules between it
//! and the host (wit-component's shim). [`code_component`] exports the main module, which then
//! imports its memory. [`Parts::around`] gives the component in which that code runs on another
//! memory: it imports the code as a core module, and has a small module that defines the memory.

use std::convert::Infallible;
use std::io;

use wasm_encoder::reencode::{Error, Reencode, ReencodeComponent, component_utils};
use wasm_encoder::{
    Alias, CanonicalFunctionSection, CanonicalOption, CodeSection, Component,
    ComponentAliasSection, ComponentExportKind, ComponentExportSection, ComponentImportSection,
    ComponentSectionId, ComponentTypeRef, ComponentTypeSection, ComponentValType, CoreTypeSection,
    EntityType, ExportKind, ExportSection, Function, FunctionSection, ImportSection,
    InstanceSection, MemArg, Module, ModuleArg, ModuleSection, ModuleType, PrimitiveValType,
    RawSection, TypeSection, ValType,
};
use wasmparser::{
    BinaryReaderError, CanonicalFunction, ComponentAlias, ComponentExternalKind, ExternalKind,
    Parser, Payload,
};

use super::image::{IMAGE, Image, MEMORY, memory_type};
use super::main_module::{Main, code_of, encoding, faulty, read_main};

/// The name by which a component imports its runtime's code, and the code's component exports it.
pub(crate) const CODE: &str = "code";

/// The function that gives the whole memory.
pub(crate) const READ_MEMORY: &str = "read-memory";

/// Where that function writes its answer, the address and the length of the memory. No program uses
/// the place: below this address lies what an invalid pointer points to.
pub(crate) const MEMORY_PAIR: u32 = 16;

/// What is read from a runtime's component.
pub(super) struct Parts<'a> {
    component: &'a [u8],
    main: &'a [u8],
    counts: Counts,
    main_type: ModuleType,
    /// The memory that the component begins with.
    pub(super) image: Image,
}

/// The sizes of the component's index spaces.
#[derive(Default)]
struct Counts {
    modules: u32,
    core_instances: u32,
    core_functions: u32,
    functions: u32,
    types: u32,
}

impl Counts {
    /// Count what a section of the component adds.
    fn add(&mut self, section: Payload<'_>) -> Result<(), BinaryReaderError> {
        match section {
            Payload::ModuleSection { .. } => self.modules += 1,
            Payload::InstanceSection(section) => self.core_instances += section.count(),
            Payload::ComponentTypeSection(section) => self.types += section.count(),
            Payload::ComponentImportSection(section) => {
                for import in section {
                    self.add_item(import?.ty.kind());
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    self.add_item(export?.kind);
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section {
                    match alias? {
                        ComponentAlias::CoreInstanceExport { kind: ExternalKind::Func, .. } => {
                            self.core_functions += 1;
                        }
                        ComponentAlias::InstanceExport { kind, .. } => self.add_item(kind),
                        _ => {}
                    }
                }
            }
            Payload::ComponentCanonicalSection(section) => {
                for function in section {
                    match function? {
                        CanonicalFunction::Lift { .. } => self.functions += 1,
                        _ => self.core_functions += 1,
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_item(&mut self, kind: ComponentExternalKind) {
        match kind {
            ComponentExternalKind::Func => self.functions += 1,
            ComponentExternalKind::Type => self.types += 1,
            _ => {}
        }
    }
}

impl<'a> Parts<'a> {
    /// Take the component apart.
    pub(super) fn of(component: &'a [u8]) -> io::Result<Self> {
        let (mut counts, mut main, mut depth) = (Counts::default(), None, 0_usize);
        for payload in Parser::new(0).parse_all(component) {
            match payload.map_err(io::Error::other)? {
                Payload::Version { .. } => depth += 1,
                Payload::End(_) => depth -= 1,
                _ if depth > 1 => {}
                Payload::ComponentSection { .. } | Payload::CoreTypeSection(_) => {
                    return Err(faulty("it has components or core types"));
                }
                section => {
                    if let Payload::ModuleSection { unchecked_range, .. } = &section {
                        main.get_or_insert(unchecked_range.clone());
                    }
                    counts.add(section).map_err(io::Error::other)?;
                }
            }
        }
        let main = &component[main.ok_or_else(|| faulty("it has no module"))?];
        let Main { ty: main_type, image } = read_main(main)?;
        Ok(Self { component, main, counts, main_type, image })
    }

    /// The component in which the runtime's code runs on this memory. It exports [`READ_MEMORY`],
    /// too.
    pub(super) fn around(&self, image: &Image) -> io::Result<Vec<u8>> {
        let mut component = Component::new();
        let mut core_types = CoreTypeSection::new();
        core_types.ty().module(&self.main_type);
        component.section(&core_types);
        let mut imports = ComponentImportSection::new();
        imports.import(CODE, ComponentTypeRef::Module(0));
        component.section(&imports);
        let mut wrapper = Wrapper { image, modules: 0 };
        wrapper
            .parse_component(&mut component, Parser::new(0), self.component)
            .map_err(encoding)?;
        self.add_reader(&mut component);
        Ok(component.finish())
    }

    /// Add a function that gives the whole memory. Its address and its length stand in the memory,
    /// as the canonical ABI returns a list.
    fn add_reader(&self, component: &mut Component) {
        let mut module = Module::new();
        let mut types = TypeSection::new();
        types.ty().function([], [ValType::I32]);
        let mut imports = ImportSection::new();
        imports.import(IMAGE, MEMORY, EntityType::Memory(memory_type(0)));
        let mut functions = FunctionSection::new();
        functions.function(0);
        let mut exports = ExportSection::new();
        exports.export(READ_MEMORY, ExportKind::Func, 0);
        let mut code = CodeSection::new();
        let mut read = Function::new([(1, ValType::I32)]);
        let length = MemArg { offset: 4, align: 2, memory_index: 0 };
        let address = MemArg { offset: 0, ..length };
        read.instructions()
            .i32_const(MEMORY_PAIR as i32)
            .local_tee(0)
            .i32_const(0)
            .i32_store(address)
            .local_get(0)
            .memory_size(0)
            .i32_const(16)
            .i32_shl()
            .i32_store(length)
            .local_get(0)
            .end();
        code.function(&read);
        module.section(&types).section(&imports).section(&functions).section(&exports);
        module.section(&code);
        // The wrapper has one more module and one more instance than the component.
        let counts = &self.counts;
        let (module_index, instance_index) = (counts.modules + 1, counts.core_instances + 1);
        component.section(&ModuleSection(&module));
        let mut instances = InstanceSection::new();
        instances.instantiate(module_index, [(IMAGE, ModuleArg::Instance(0))]);
        component.section(&instances);
        let mut aliases = ComponentAliasSection::new();
        aliases.alias(Alias::CoreInstanceExport {
            instance: instance_index,
            kind: ExportKind::Func,
            name: READ_MEMORY,
        });
        component.section(&aliases);
        let mut types = ComponentTypeSection::new();
        types.defined_type().list(PrimitiveValType::U8);
        let list = ComponentValType::Type(counts.types);
        types.function().params::<[(&str, ComponentValType); 0], _>([]).result(Some(list));
        component.section(&types);
        let mut canonical = CanonicalFunctionSection::new();
        canonical.lift(counts.core_functions, counts.types + 1, [CanonicalOption::Memory(0)]);
        component.section(&canonical);
        let mut exports = ComponentExportSection::new();
        exports.export(READ_MEMORY, ComponentExportKind::Func, counts.functions, None);
        component.section(&exports);
    }
}

/// A component that exports the code of a runtime.
pub(crate) fn code_component(runtime: &[u8]) -> io::Result<Vec<u8>> {
    let parts = Parts::of(runtime)?;
    let mut component = Component::new();
    component.section(&ModuleSection(&code_of(parts.main)?));
    let mut exports = ComponentExportSection::new();
    exports.export(CODE, ComponentExportKind::Module, 0, None);
    component.section(&exports);
    Ok(component.finish())
}

/// Writes the component with another memory: module 0 is the imported code, module 1 the memory,
/// and core instance 0 is that of the memory.
struct Wrapper<'a> {
    image: &'a Image,
    /// The modules that were read.
    modules: u32,
}

impl Reencode for Wrapper<'_> {
    type Error = Infallible;
}

impl ReencodeComponent for Wrapper<'_> {
    fn module_index(&mut self, index: u32) -> u32 {
        if index == 0 { 0 } else { index + 1 }
    }

    fn instance_index(&mut self, index: u32) -> u32 {
        index + 1
    }

    fn parse_component_submodule(
        &mut self,
        component: &mut Component,
        _: Parser,
        module: &[u8],
    ) -> Result<(), Error<Infallible>> {
        self.modules += 1;
        if self.modules > 1 {
            component
                .section(&RawSection { id: ComponentSectionId::CoreModule as u8, data: module });
            return Ok(());
        }
        component.section(&ModuleSection(&self.image.module()));
        let mut instances = InstanceSection::new();
        instances.instantiate::<[(&str, ModuleArg); 0], _>(1, []);
        component.section(&instances);
        Ok(())
    }

    fn parse_component_custom_section(
        &mut self,
        _: &mut Component,
        _: wasmparser::CustomSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        Ok(())
    }

    fn parse_instance(
        &mut self,
        instances: &mut InstanceSection,
        instance: wasmparser::Instance<'_>,
    ) -> Result<(), Error<Infallible>> {
        let wasmparser::Instance::Instantiate { module_index: 0, args } = &instance else {
            return component_utils::parse_instance(self, instances, instance);
        };
        let args =
            args.iter().map(|arg| (arg.name, ModuleArg::Instance(self.instance_index(arg.index))));
        let image = std::iter::once((IMAGE, ModuleArg::Instance(0)));
        let args: Vec<_> = args.chain(image).collect();
        instances.instantiate(0, args);
        Ok(())
    }
}
