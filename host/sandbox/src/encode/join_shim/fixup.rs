//! The module that fills the shim's entries of the main module's table.

use wasm_encoder::{
    ConstExpr, ElementSection, Elements, EntityType, FuncType, ImportSection, Module, TypeSection,
};
use wasmparser::{Parser, Payload, TypeRef};

use super::main_module::MainModule;
use super::parts::{ShimParts, TABLE};

/// The module `fixup` for the table of `main`. None if it does not have the expected form.
pub(super) fn encode(fixup: &[u8], parts: &ShimParts<'_>, main: &MainModule<'_>) -> Option<Module> {
    let (mut types, mut imports) = (TypeSection::new(), ImportSection::new());
    let mut functions = 0;
    for payload in Parser::new(0).parse_all(fixup) {
        match payload.ok()? {
            Payload::TypeSection(section) => {
                for ty in section.into_iter_err_on_gc_types() {
                    types.ty().func_type(&FuncType::try_from(ty.ok()?).ok()?);
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.ok()?;
                    match import.ty {
                        TypeRef::Func(ty) if import.name == functions.to_string() => {
                            imports.import(import.module, import.name, EntityType::Function(ty));
                            functions += 1;
                        }
                        TypeRef::Table(_) if import.name == TABLE => {
                            imports.import(import.module, TABLE, EntityType::Table(main.table));
                        }
                        _ => return None,
                    }
                }
            }
            _ => {}
        }
    }
    if functions != parts.functions {
        return None;
    }
    let entries: Vec<u32> = (0..functions).collect();
    let mut elements = ElementSection::new();
    let first = ConstExpr::i32_const(main.first_entry);
    elements.active(None, &first, Elements::Functions(entries.into()));
    let mut module = Module::new();
    module.section(&types).section(&imports).section(&elements);
    Some(module)
}
