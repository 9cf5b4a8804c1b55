//! Global variables that are moved into the memory.
//!
//! A runtime's memory is all of its state, but for the pointer of the stack. wit-component's
//! adapter, by which a libc of WASI's first version calls the host, has variables of its own. Each
//! access to one becomes a call of a function that reads or writes a place in the memory.

use std::convert::Infallible;

use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    CodeSection, ConstExpr, Function, FunctionSection, GlobalSection, GlobalType, Instruction,
    MemArg, TypeSection, ValType,
};
use wasmparser::{DataKind, Operator, Parser, Payload, TypeRef};

use crate::Result;

/// The place of the first variable. It is at the end of the stack, below all that a program uses,
/// and behind the place where the sandbox writes the address of the memory.
const PLACE: i32 = 32;

/// The variables that are moved, and the indices of what is added for them.
pub(crate) struct Moved {
    variables: Vec<u32>,
    /// The first function that is added: one that reads and one that writes for each variable.
    functions: u32,
    /// The first type that is added: of a function that reads, and of one that writes.
    types: u32,
}

impl Moved {
    /// The variables that the code of `module` writes, but for the first, the stack's pointer.
    pub(crate) fn of(module: &[u8]) -> Result<Self> {
        let (mut functions, mut types) = (0, 0);
        let mut written = std::collections::BTreeSet::new();
        let mut values = Vec::new();
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::TypeSection(section) => {
                    for group in section {
                        types += u32::try_from(group?.types().len())?;
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        match import?.ty {
                            TypeRef::Func(_) => functions += 1,
                            other => return Err(format!("the module imports {other:?}").into()),
                        }
                    }
                }
                Payload::FunctionSection(section) => functions += section.count(),
                Payload::GlobalSection(section) => {
                    for global in section {
                        let value = global?.init_expr.get_operators_reader().read()?;
                        values.push(matches!(value, Operator::I32Const { value: 0 }));
                    }
                }
                Payload::DataSection(section) => {
                    for data in section {
                        let DataKind::Active { offset_expr, .. } = data?.kind else { continue };
                        let at = offset_expr.get_operators_reader().read()?;
                        if matches!(at, Operator::I32Const { value: 0..=1023 }) {
                            return Err("the module has data below the stack".into());
                        }
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    for operator in body.get_operators_reader()? {
                        if let Operator::GlobalSet { global_index } = operator? {
                            written.insert(global_index);
                        }
                    }
                }
                _ => {}
            }
        }
        let variables: Vec<_> = written.into_iter().skip(1).collect();
        if let Some(other) = variables.iter().find(|index| !values[**index as usize]) {
            return Err(format!("the global variable {other} does not begin with 0").into());
        }
        Ok(Self { variables, functions, types })
    }

    /// The function that is called in place of an access to this variable.
    fn function(&self, variable: u32, writes: bool) -> Option<u32> {
        let index = self.variables.iter().position(|moved| *moved == variable)?;
        Some(self.functions + 2 * u32::try_from(index).ok()? + u32::from(writes))
    }
}

/// Writes the module without these variables.
impl Reencode for Moved {
    type Error = Infallible;

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: wasmparser::TypeSectionReader<'_>,
    ) -> std::result::Result<(), Error<Infallible>> {
        utils::parse_type_section(self, types, section)?;
        types.ty().function([], [ValType::I32]);
        types.ty().function([ValType::I32], []);
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: wasmparser::FunctionSectionReader<'_>,
    ) -> std::result::Result<(), Error<Infallible>> {
        utils::parse_function_section(self, functions, section)?;
        for _ in &self.variables {
            functions.function(self.types);
            functions.function(self.types + 1);
        }
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: wasmparser::CodeSectionReader<'_>,
    ) -> std::result::Result<(), Error<Infallible>> {
        utils::parse_code_section(self, code, section)?;
        let at = MemArg { offset: 0, align: 2, memory_index: 0 };
        for place in (PLACE..).step_by(4).take(self.variables.len()) {
            let mut read = Function::new([]);
            read.instructions().i32_const(place).i32_load(at).end();
            let mut write = Function::new([]);
            write.instructions().i32_const(place).local_get(0).i32_store(at).end();
            code.function(&read).function(&write);
        }
        Ok(())
    }

    fn parse_instruction<'a>(
        &mut self,
        reader: &mut wasmparser::OperatorsReader<'a>,
    ) -> std::result::Result<Instruction<'a>, Error<Infallible>> {
        let instruction = utils::parse_instruction(self, reader)?;
        let function = match &instruction {
            Instruction::GlobalGet(variable) => self.function(*variable, false),
            Instruction::GlobalSet(variable) => self.function(*variable, true),
            _ => None,
        };
        Ok(function.map_or(instruction, Instruction::Call))
    }

    /// The variables stay, as constants that nothing reads.
    fn parse_global(
        &mut self,
        globals: &mut GlobalSection,
        global: wasmparser::Global<'_>,
    ) -> std::result::Result<(), Error<Infallible>> {
        if self.variables.contains(&globals.len()) {
            let constant = GlobalType { val_type: ValType::I32, mutable: false, shared: false };
            globals.global(constant, &ConstExpr::i32_const(0));
            return Ok(());
        }
        utils::parse_global(self, globals, global)
    }
}
