//! The main module with the functions of the shim.
//!
//! Functions that were imported from the shim are defined: each calls an entry at the end of the
//! module's table. They come first among the defined functions, so that those keep their indices.

use std::convert::Infallible;

use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    CodeSection, ExportKind, ExportSection, Function, FunctionSection, ImportSection, Module,
    NameMap, NameSection, TableSection, TableType,
};
use wasmparser::{
    CodeSectionReader, ExportSectionReader, FunctionBody, FunctionSectionReader,
    ImportSectionReader, Name, Operator, Parser, Payload, RefType, TableInit, TableSectionReader,
    TypeRef,
};

use super::parts::{ShimParts, TABLE};

/// A function that the main module imports from the shim.
struct Import {
    /// Its index in the module.
    function: u32,
    /// Its type in the module.
    ty: u32,
    /// The number of its parameters.
    parameters: u32,
    /// The shim's function.
    number: u32,
}

/// The changes of the main module.
pub(super) struct MainModule<'a> {
    parts: &'a ShimParts<'a>,
    /// In order of their indices.
    imports: Vec<Import>,
    /// The number of all functions that it imports.
    imported: u32,
    /// The type of the table, with the shim's entries at its end.
    pub(super) table: TableType,
    /// The first of the shim's entries.
    pub(super) first_entry: i32,
}

impl<'a> MainModule<'a> {
    /// None if the module cannot take the shim's functions.
    pub(super) fn new(parts: &'a ShimParts<'a>) -> Option<Self> {
        let (mut parameters, mut imports, mut imported) = (Vec::new(), Vec::new(), 0);
        let mut table = None;
        for payload in Parser::new(0).parse_all(parts.main) {
            match payload.ok()? {
                Payload::TypeSection(section) => {
                    for ty in section.into_iter_err_on_gc_types() {
                        parameters.push(u32::try_from(ty.ok()?.params().len()).ok()?);
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import.ok()?;
                        let TypeRef::Func(ty) = import.ty else { return None };
                        if let Some(number) = parts.imports.get(&(import.module, import.name)) {
                            let parameters = *parameters.get(ty as usize)?;
                            let (function, number) = (imported, *number);
                            imports.push(Import { function, ty, parameters, number });
                        }
                        imported += 1;
                    }
                }
                Payload::TableSection(section) => {
                    for defined in section {
                        let defined = defined.ok()?;
                        let is_empty = matches!(defined.init, TableInit::RefNull);
                        if !is_empty || table.replace(defined.ty).is_some() {
                            return None;
                        }
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        if export.ok()?.name == TABLE {
                            return None;
                        }
                    }
                }
                Payload::CodeSectionEntry(body) if sees_the_table(&body)? => return None,
                // It would name other places of the code.
                Payload::CustomSection(section) if section.name().starts_with(".debug") => {
                    return None;
                }
                _ => {}
            }
        }
        let (table, first_entry) = with_entries(table?, parts.functions)?;
        Some(Self { parts, imports, imported, table, first_entry })
    }

    /// The changed module.
    pub(super) fn encode(&mut self) -> Option<Module> {
        let mut module = Module::new();
        self.parse_core_module(&mut module, Parser::new(0), self.parts.main).ok()?;
        Some(module)
    }

    /// The number of functions that stay imports, of those before `function`.
    fn kept_before(&self, function: u32) -> u32 {
        function - self.imports.partition_point(|import| import.function < function) as u32
    }
}

/// Whether a function would notice that the table has more entries, other than by calling them.
fn sees_the_table(body: &FunctionBody<'_>) -> Option<bool> {
    let mut operators = body.get_operators_reader().ok()?;
    while !operators.eof() {
        let sees = matches!(
            operators.read().ok()?,
            Operator::TableSize { .. }
                | Operator::TableGrow { .. }
                | Operator::TableGet { .. }
                | Operator::TableSet { .. }
                | Operator::TableFill { .. }
                | Operator::TableCopy { .. }
                | Operator::TableInit { .. }
        );
        if sees {
            return Some(true);
        }
    }
    Some(false)
}

/// The type of the table with so many more entries, and the first of these.
fn with_entries(table: wasmparser::TableType, entries: u32) -> Option<(TableType, i32)> {
    if table.element_type != RefType::FUNCREF || table.table64 || table.shared {
        return None;
    }
    let more = |size: u64| Some(size.checked_add(u64::from(entries))?.min(u64::from(u32::MAX)));
    let maximum = match table.maximum {
        Some(maximum) => Some(more(maximum)?),
        None => None,
    };
    let ty = TableType {
        element_type: wasm_encoder::RefType::FUNCREF,
        table64: false,
        minimum: more(table.initial)?,
        maximum,
        shared: false,
    };
    Some((ty, i32::try_from(table.initial).ok()?))
}

type Outcome = Result<(), Error<Infallible>>;

impl Reencode for MainModule<'_> {
    type Error = Infallible;

    fn function_index(&mut self, function: u32) -> Result<u32, Error<Infallible>> {
        if function >= self.imported {
            return Ok(function);
        }
        let place = self.imports.binary_search_by_key(&function, |import| import.function);
        Ok(match place {
            Ok(place) => self.kept_before(self.imported) + place as u32,
            Err(_) => self.kept_before(function),
        })
    }

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: ImportSectionReader<'_>,
    ) -> Outcome {
        for import in section.into_imports() {
            let import = import?;
            if !self.parts.imports.contains_key(&(import.module, import.name)) {
                imports.import(import.module, import.name, self.entity_type(import.ty)?);
            }
        }
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Outcome {
        for import in &self.imports {
            functions.function(import.ty);
        }
        utils::parse_function_section(self, functions, section)
    }

    fn parse_table_section(
        &mut self,
        tables: &mut TableSection,
        _: TableSectionReader<'_>,
    ) -> Outcome {
        tables.table(self.table);
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: ExportSectionReader<'_>,
    ) -> Outcome {
        exports.export(TABLE, ExportKind::Table, 0);
        utils::parse_export_section(self, exports, section)
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Outcome {
        for import in &self.imports {
            let mut function = Function::new([]);
            let mut body = function.instructions();
            for parameter in 0..import.parameters {
                body.local_get(parameter);
            }
            body.i32_const(self.first_entry.wrapping_add_unsigned(import.number));
            body.call_indirect(0, import.ty).end();
            code.function(&function);
        }
        utils::parse_code_section(self, code, section)
    }

    /// Names must be in the order of their indices.
    fn parse_custom_name_subsection(
        &mut self,
        names: &mut NameSection,
        section: Name<'_>,
    ) -> Outcome {
        let Name::Function(map) = section else {
            return utils::parse_custom_name_subsection(self, names, section);
        };
        let mut ordered = Vec::new();
        for name in map {
            let name = name?;
            ordered.push((self.function_index(name.index)?, name.name));
        }
        ordered.sort_unstable();
        let mut map = NameMap::new();
        for (index, name) in ordered {
            map.append(index, name);
        }
        names.functions(&map);
        Ok(())
    }
}
