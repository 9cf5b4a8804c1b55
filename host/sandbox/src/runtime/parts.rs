//! A runtime's component in parts: its code, which is compiled once, and components around
//! memories.
//!
//! The component has one main module, the first, which defines the memory, and modules between it
//! and the host (wit-component's shim). [`code_component`] exports the main module, which then
//! imports its memory. [`Wrapper::around`] gives the component in which that code runs on another
//! memory: it imports the code as a core module, and has a small module that defines the memory.

use std::convert::Infallible;
use std::io;

use wasm_encoder::reencode::{Error, Reencode, ReencodeComponent, utils};
use wasm_encoder::{
    Alias, CanonicalFunctionSection, CanonicalOption, CodeSection, Component,
    ComponentAliasSection, ComponentExportKind, ComponentExportSection, ComponentImportSection,
    ComponentSectionId, ComponentTypeRef, ComponentTypeSection, CoreTypeSection, DataSection,
    EntityType, ExportKind, ExportSection, Function, FunctionSection, ImportSection,
    InstanceSection, MemorySection, MemoryType, ModuleArg, ModuleSection, ModuleType,
    PrimitiveValType, RawSection, TypeSection, ValType,
};
use wasmparser::{
    ComponentAlias, ComponentExternalKind, ConstExpr, DataKind, ExternalKind, FuncType, Operator,
    Parser, Payload, TypeRef,
};

/// The name by which a component imports its runtime's code, and the code's component exports it.
pub(crate) const CODE: &str = "code";

/// The module and the name from which the code imports its memory.
const IMAGE: &str = "image";
const MEMORY: &str = "memory";

/// The function that gives the whole memory, for the component in which sources are loaded.
pub(super) const READ_MEMORY: &str = "read-memory";

/// The bytes of a page of WebAssembly.
const WASM_PAGE: usize = 64 << 10;

/// Zeros are left out in pieces of this size: those of the processor's pages.
const PIECE: usize = 4 << 10;

/// The content of a linear memory.
pub(super) struct Image {
    pub(super) bytes: Vec<u8>,
}

impl Image {
    fn pages(&self) -> u64 {
        self.bytes.len().div_ceil(WASM_PAGE) as u64
    }

    fn memory_type(&self) -> MemoryType {
        memory_type(self.pages())
    }

    /// The module that defines the memory.
    fn module(&self) -> wasm_encoder::Module {
        let mut module = wasm_encoder::Module::new();
        let mut memories = MemorySection::new();
        memories.memory(self.memory_type());
        let mut exports = ExportSection::new();
        exports.export(MEMORY, ExportKind::Memory, 0);
        module.section(&memories).section(&exports);
        let mut data = DataSection::new();
        let is_empty = |piece: &[u8]| piece.iter().all(|byte| *byte == 0);
        let mut begin = 0;
        while begin < self.bytes.len() {
            let mut end = begin;
            while end < self.bytes.len() {
                let next = (end + PIECE).min(self.bytes.len());
                if is_empty(&self.bytes[end..next]) {
                    break;
                }
                end = next;
            }
            if end > begin {
                let at = wasm_encoder::ConstExpr::i32_const(begin as u32 as i32);
                data.active(0, &at, self.bytes[begin..end].iter().copied());
            }
            begin = end.max(begin + PIECE) / PIECE * PIECE;
        }
        module.section(&data);
        module
    }
}

fn memory_type(minimum: u64) -> MemoryType {
    MemoryType { minimum, maximum: None, memory64: false, shared: false, page_size_log2: None }
}

/// What is read from a runtime's component.
pub(super) struct Parts<'a> {
    component: &'a [u8],
    main: &'a [u8],
    /// Core modules and core instances of the component.
    modules: u32,
    instances: u32,
    /// Core functions, functions and types of the component.
    core_functions: u32,
    functions: u32,
    types: u32,
    main_type: ModuleType,
    /// The memory that the component begins with.
    pub(super) image: Image,
}

fn faulty(why: impl Into<String>) -> io::Error {
    io::Error::other(format!("the runtime cannot be taken apart: {}", why.into()))
}

fn encoding(error: Error<Infallible>) -> io::Error {
    faulty(format!("{error:?}"))
}

impl<'a> Parts<'a> {
    /// Take the component apart.
    pub(super) fn of(component: &'a [u8]) -> io::Result<Self> {
        let (mut modules, mut instances, mut main) = (0, 0, None);
        let (mut core_functions, mut functions, mut types) = (0, 0, 0);
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(component) {
            let payload = payload.map_err(io::Error::other)?;
            match payload {
                Payload::ModuleSection { ref unchecked_range, .. } if depth == 1 => {
                    modules += 1;
                    main.get_or_insert(unchecked_range.start..unchecked_range.end);
                }
                Payload::ComponentSection { .. } | Payload::CoreTypeSection(_) if depth == 1 => {
                    return Err(faulty("it has components or core types"));
                }
                Payload::InstanceSection(ref section) if depth == 1 => instances += section.count(),
                Payload::ComponentTypeSection(ref section) if depth == 1 => {
                    types += section.count()
                }
                Payload::ComponentImportSection(ref section) if depth == 1 => {
                    for import in section.clone() {
                        match import.map_err(io::Error::other)?.ty {
                            wasmparser::ComponentTypeRef::Type(_) => types += 1,
                            wasmparser::ComponentTypeRef::Func(_) => functions += 1,
                            _ => {}
                        }
                    }
                }
                Payload::ComponentAliasSection(ref section) if depth == 1 => {
                    for alias in section.clone() {
                        match alias.map_err(io::Error::other)? {
                            ComponentAlias::CoreInstanceExport {
                                kind: ExternalKind::Func, ..
                            } => {
                                core_functions += 1;
                            }
                            ComponentAlias::InstanceExport {
                                kind: ComponentExternalKind::Func,
                                ..
                            } => functions += 1,
                            ComponentAlias::InstanceExport {
                                kind: ComponentExternalKind::Type,
                                ..
                            } => types += 1,
                            _ => {}
                        }
                    }
                }
                Payload::ComponentCanonicalSection(ref section) if depth == 1 => {
                    for canonical in section.clone() {
                        match canonical.map_err(io::Error::other)? {
                            wasmparser::CanonicalFunction::Lift { .. } => functions += 1,
                            _ => core_functions += 1,
                        }
                    }
                }
                Payload::ComponentExportSection(ref section) if depth == 1 => {
                    for export in section.clone() {
                        match export.map_err(io::Error::other)?.kind {
                            ComponentExternalKind::Func => functions += 1,
                            ComponentExternalKind::Type => types += 1,
                            _ => {}
                        }
                    }
                }
                Payload::Version { .. } => depth += 1,
                Payload::End(_) => depth -= 1,
                _ => {}
            }
        }
        let main = main.ok_or_else(|| faulty("it has no module"))?;
        let main = &component[main];
        let Main { ty: main_type, image } = read_main(main)?;
        let (modules, instances) = (modules, instances);
        Ok(Self {
            component,
            main,
            modules,
            instances,
            core_functions,
            functions,
            types,
            main_type,
            image,
        })
    }

    /// The component in which the runtime's code runs on this memory. With `reads_memory` it
    /// exports [`READ_MEMORY`].
    pub(super) fn around(&self, image: &Image, reads_memory: bool) -> io::Result<Vec<u8>> {
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
        if reads_memory {
            self.add_reader(&mut component);
        }
        Ok(component.finish())
    }

    /// Add a function that gives the whole memory. It makes the memory larger by one page, in which
    /// address and length of the rest stand, as the canonical ABI returns a list.
    fn add_reader(&self, component: &mut Component) {
        let mut module = wasm_encoder::Module::new();
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
        let length = wasm_encoder::MemArg { offset: 4, align: 2, memory_index: 0 };
        // The first word of the new page, the address, is 0 already.
        read.instructions()
            .i32_const(1)
            .memory_grow(0)
            .i32_const(16)
            .i32_shl()
            .local_tee(0)
            .local_get(0)
            .i32_store(length)
            .local_get(0)
            .end();
        code.function(&read);
        module.section(&types).section(&imports).section(&functions).section(&exports);
        module.section(&code);
        // The wrapper has one more module and one more instance than the component.
        let (module_index, instance_index) = (self.modules + 1, self.instances + 1);
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
        let list = wasm_encoder::ComponentValType::Type(self.types);
        types
            .function()
            .params::<[(&str, wasm_encoder::ComponentValType); 0], _>([])
            .result(Some(list));
        component.section(&types);
        let mut canonical = CanonicalFunctionSection::new();
        canonical.lift(self.core_functions, self.types + 1, [CanonicalOption::Memory(0)]);
        component.section(&canonical);
        let mut exports = ComponentExportSection::new();
        exports.export(READ_MEMORY, ComponentExportKind::Func, self.functions, None);
        component.section(&exports);
    }
}

/// A component that exports the code of a runtime.
pub(crate) fn code_component(runtime: &[u8]) -> io::Result<Vec<u8>> {
    let parts = Parts::of(runtime)?;
    let mut module = wasm_encoder::Module::new();
    CodeOnly.parse_core_module(&mut module, Parser::new(0), parts.main).map_err(encoding)?;
    let mut component = Component::new();
    component.section(&ModuleSection(&module));
    let mut exports = ComponentExportSection::new();
    exports.export(CODE, ComponentExportKind::Module, 0, None);
    component.section(&exports);
    Ok(component.finish())
}

/// Writes a module without its memory, which it imports.
struct CodeOnly;

impl Reencode for CodeOnly {
    type Error = Infallible;

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: wasmparser::ImportSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        imports.import(IMAGE, MEMORY, EntityType::Memory(memory_type(0)));
        utils::parse_import_section(self, imports, section)
    }

    fn parse_memory_section(
        &mut self,
        _: &mut MemorySection,
        _: wasmparser::MemorySectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        Ok(())
    }

    fn parse_data_section(
        &mut self,
        _: &mut DataSection,
        _: wasmparser::DataSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        Ok(())
    }

    fn data_count(&mut self, _: u32) -> Result<u32, Error<Infallible>> {
        Ok(0)
    }
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
            return wasm_encoder::reencode::component_utils::parse_instance(
                self, instances, instance,
            );
        };
        let args = args.iter().map(|arg| (arg.name, ModuleArg::Instance(arg.index + 1)));
        let image = std::iter::once((IMAGE, ModuleArg::Instance(0)));
        let args: Vec<_> = args.chain(image).collect();
        instances.instantiate(0, args);
        Ok(())
    }
}

/// What is read from the main module.
struct Main {
    /// Its type, with the memory as an import.
    ty: ModuleType,
    image: Image,
}

/// Read the main module, and check that the memory is all of its state.
fn read_main(module: &[u8]) -> io::Result<Main> {
    let mut ty = ModuleType::new();
    let mut image = Image { bytes: Vec::new() };
    // The types of the module, and those of its functions.
    let (mut types, mut functions): (Vec<FuncType>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut mutable_globals = 0;
    ty.import(IMAGE, MEMORY, EntityType::Memory(memory_type(0)));
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(io::Error::other)? {
            Payload::TypeSection(section) => {
                for group in section {
                    for one in group.map_err(io::Error::other)?.into_types() {
                        let function = one.composite_type.inner;
                        let wasmparser::CompositeInnerType::Func(function) = function else {
                            return Err(faulty("it has types that are not functions"));
                        };
                        add_type(&mut ty, &function)?;
                        types.push(function);
                    }
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.map_err(io::Error::other)?;
                    let TypeRef::Func(index) = import.ty else {
                        return Err(faulty(format!("it imports {:?}", import.ty)));
                    };
                    ty.import(import.module, import.name, EntityType::Function(index));
                    functions.push(index);
                }
            }
            Payload::FunctionSection(section) => {
                for index in section {
                    functions.push(index.map_err(io::Error::other)?);
                }
            }
            Payload::MemorySection(section) => {
                for memory in section {
                    let memory = memory.map_err(io::Error::other)?;
                    image.bytes.resize(memory.initial as usize * WASM_PAGE, 0);
                }
            }
            Payload::GlobalSection(section) => {
                for global in section {
                    mutable_globals += u32::from(global.map_err(io::Error::other)?.ty.mutable);
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export.map_err(io::Error::other)?;
                    let entity = match export.kind {
                        ExternalKind::Func => {
                            let function = functions.get(export.index as usize);
                            EntityType::Function(*function.ok_or_else(|| faulty("an export"))?)
                        }
                        ExternalKind::Memory => EntityType::Memory(memory_type(0)),
                        other => return Err(faulty(format!("it exports a {other:?}"))),
                    };
                    ty.export(export.name, entity);
                }
            }
            Payload::StartSection { .. } => return Err(faulty("it has a start function")),
            Payload::DataSection(section) => {
                for data in section {
                    let data = data.map_err(io::Error::other)?;
                    let DataKind::Active { memory_index: 0, offset_expr } = data.kind else {
                        return Err(faulty("it has data that is not there from the start"));
                    };
                    let at = constant(&offset_expr)? as usize;
                    let place = image.bytes.get_mut(at..at + data.data.len());
                    place.ok_or_else(|| faulty("its data"))?.copy_from_slice(data.data);
                }
            }
            Payload::CodeSectionEntry(body) => {
                for operator in body.get_operators_reader().map_err(io::Error::other)? {
                    let operator = operator.map_err(io::Error::other)?;
                    if changes_tables(&operator) {
                        return Err(faulty(
                            "its code changes a table, or reads data that is not there from the start",
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    if mutable_globals > 1 {
        return Err(faulty(format!("it has {mutable_globals} mutable globals")));
    }
    Ok(Main { ty, image })
}

fn add_type(ty: &mut ModuleType, function: &FuncType) -> io::Result<()> {
    let values = |values: &[wasmparser::ValType]| -> io::Result<Vec<ValType>> {
        let value = |value: &wasmparser::ValType| ValType::try_from(*value);
        values.iter().map(value).collect::<Result<_, _>>().map_err(|_| faulty("a type"))
    };
    ty.ty().function(values(function.params())?, values(function.results())?);
    Ok(())
}

fn constant(expression: &ConstExpr<'_>) -> io::Result<u32> {
    match expression.get_operators_reader().read().map_err(io::Error::other)? {
        Operator::I32Const { value } => Ok(value as u32),
        _ => Err(faulty("the place of its data is not constant")),
    }
}

fn changes_tables(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::TableSet { .. }
            | Operator::TableGrow { .. }
            | Operator::TableFill { .. }
            | Operator::TableCopy { .. }
            | Operator::TableInit { .. }
            | Operator::ElemDrop { .. }
            | Operator::MemoryInit { .. }
            | Operator::DataDrop { .. }
    )
}
