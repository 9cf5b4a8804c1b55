//! The main module of a runtime: its type, its memory, and its code without the memory.

use std::convert::Infallible;
use std::io;

use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    DataSection, EntityType, ImportSection, MemorySection, Module, ModuleType, ValType,
};
use wasmparser::{ConstExpr, DataKind, ExternalKind, FuncType, Operator, Parser, Payload, TypeRef};

use super::image::{IMAGE, Image, MEMORY, WASM_PAGE, memory_type};

/// A fault of a runtime's file.
pub(super) fn faulty(why: impl Into<String>) -> io::Error {
    io::Error::other(format!("the runtime cannot be taken apart: {}", why.into()))
}

/// A fault of writing a part of it.
pub(super) fn encoding(error: Error<Infallible>) -> io::Error {
    faulty(format!("{error:?}"))
}

/// The main module without its memory, which it imports.
pub(super) fn code_of(module: &[u8]) -> io::Result<Module> {
    let mut code = Module::new();
    CodeOnly.parse_core_module(&mut code, Parser::new(0), module).map_err(encoding)?;
    Ok(code)
}

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

/// What is read from the main module.
pub(super) struct Main {
    /// Its type, with the memory as an import.
    pub(super) ty: ModuleType,
    /// The memory that it begins with.
    pub(super) image: Image,
}

/// Read the main module, and check that the memory is all of its state.
pub(super) fn read_main(module: &[u8]) -> io::Result<Main> {
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
