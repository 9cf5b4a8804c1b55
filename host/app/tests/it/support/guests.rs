//! Components that no toolchain makes, and variants of known plugins.
//!
//! The components export a function `preprocess` without parameters. A server compiles them and
//! then refuses them, because they do not fit the contract.

use wasm_encoder::{
    BlockType, CodeSection, ComponentBuilder, ComponentExportKind, ExportKind, ExportSection,
    Function, FunctionSection, Instruction, MemorySection, Module, ModuleArg, TableSection,
    TypeSection, ValType,
};

use super::modules::{ANSWER, Guest, honest};
use super::wasm;

/// The same plugin in a file with another digest.
pub(crate) fn variant(plugin: &[u8], number: u32) -> Vec<u8> {
    // A custom section: its length, the length of its name, its name, its content.
    let section = [&[0, 6, 1, b'x'][..], &number.to_le_bytes()].concat();
    [plugin, &section].concat()
}

/// A small component that takes minutes to compile: loops in loops.
pub(crate) fn bomb() -> Vec<u8> {
    let mut body = Function::new([]);
    for _ in 0..40_000 {
        body.instruction(&Instruction::Loop(BlockType::Empty));
    }
    for _ in 0..40_000 {
        body.instruction(&Instruction::End);
    }
    body.instruction(&Instruction::End);
    component(&module(&[body]), 1)
}

/// A component that takes seconds and more than a hundred megabytes of memory to compile.
pub(crate) fn large() -> Vec<u8> {
    let mut bodies = vec![Function::new([])];
    bodies[0].instruction(&Instruction::End);
    for index in 0..5_000 {
        let mut body = Function::new([(2, ValType::I32)]);
        for round in 0..100 {
            body.instruction(&Instruction::LocalGet(0));
            body.instruction(&Instruction::I32Const(index * 31 + round));
            body.instruction(&Instruction::I32Mul);
            body.instruction(&Instruction::LocalTee(1));
            body.instruction(&Instruction::LocalGet(1));
            body.instruction(&Instruction::I32Rotl);
            body.instruction(&Instruction::LocalSet(0));
        }
        body.instruction(&Instruction::End);
        bodies.push(body);
    }
    component(&module(&bodies), 1)
}

/// A component whose function does nothing and is `bytes` long.
pub(crate) fn with_code(bytes: usize) -> Vec<u8> {
    let mut body = Function::new([]);
    for _ in 0..bytes {
        body.instruction(&Instruction::Nop);
    }
    body.instruction(&Instruction::End);
    component(&module(&[body]), 1)
}

/// A component with `count` instances of a core module.
pub(crate) fn with_instances(count: usize) -> Vec<u8> {
    let mut body = Function::new([]);
    body.instruction(&Instruction::End);
    component(&module(&[body]), count)
}

/// A component with `count` functions that do nothing.
pub(crate) fn with_functions(count: usize) -> Vec<u8> {
    let mut body = Function::new([]);
    body.instruction(&Instruction::End);
    component(&module(&vec![body; count]), 1)
}

/// A component with a function that branches to `count` places, which are one.
pub(crate) fn with_branches(count: usize) -> Vec<u8> {
    let mut body = Function::new([]);
    body.instruction(&Instruction::Block(BlockType::Empty));
    body.instruction(&Instruction::I32Const(0));
    body.instruction(&Instruction::BrTable(vec![0; count].into(), 0));
    body.instruction(&Instruction::End);
    body.instruction(&Instruction::End);
    component(&module(&[body]), 1)
}

/// A component with a function of so many locals, all of them changed in a loop.
pub(crate) fn with_locals(count: u32) -> Vec<u8> {
    let mut body = Function::new([(count, ValType::I32)]);
    body.instruction(&Instruction::Loop(BlockType::Empty));
    for local in 0..count {
        body.instruction(&Instruction::LocalGet(local));
        body.instruction(&Instruction::I32Const(1));
        body.instruction(&Instruction::I32Add);
        body.instruction(&Instruction::LocalSet(local));
    }
    body.instruction(&Instruction::LocalGet(0));
    body.instruction(&Instruction::BrIf(0));
    body.instruction(&Instruction::End);
    body.instruction(&Instruction::End);
    component(&module(&[body]), 1)
}

/// A component with so many types, of which one is used.
pub(crate) fn with_types(count: u32) -> Vec<u8> {
    let mut body = Function::new([]);
    body.instruction(&Instruction::End);
    component(&module_of(ModuleParts { types: count, ..ModuleParts::of(&[body]) }), 1)
}

/// A component whose module has so many tables and memories of its own.
pub(crate) fn with_tables_and_memories(tables: u32, memories: u32) -> Vec<u8> {
    let mut body = Function::new([]);
    body.instruction(&Instruction::End);
    component(&module_of(ModuleParts { tables, memories, ..ModuleParts::of(&[body]) }), 1)
}

/// A component that has a component within, and so on. Each of these instantiates the next one
/// twice, and the innermost one instantiates a module.
pub(crate) fn tower(floors: u32) -> Vec<u8> {
    let mut innermost = ComponentBuilder::default();
    let mut body = Function::new([]);
    body.instruction(&Instruction::End);
    let core_module = innermost.core_module(None, &module(&[body.clone()]));
    innermost.core_instantiate(None, core_module, [] as [(&str, ModuleArg); 0]);
    let mut floor = innermost;
    for _ in 0..floors {
        let mut next = ComponentBuilder::default();
        let inner = next.component(None, floor);
        for _ in 0..2 {
            let arguments = [] as [(&str, ComponentExportKind, u32); 0];
            next.instantiate(None, inner, arguments);
        }
        floor = next;
    }
    with_preprocess(floor, &module(&[body]), 1)
}

/// The parts of a module.
struct ModuleParts<'a> {
    /// Function types besides the first.
    types: u32,
    tables: u32,
    memories: u32,
    bodies: &'a [Function],
}

impl<'a> ModuleParts<'a> {
    fn of(bodies: &'a [Function]) -> Self {
        Self { types: 0, tables: 0, memories: 0, bodies }
    }
}

/// A module of functions without parameters and results. The first one is exported.
fn module(bodies: &[Function]) -> Module {
    module_of(ModuleParts::of(bodies))
}

fn module_of(parts: ModuleParts<'_>) -> Module {
    let (mut types, mut functions, mut exports, mut code) =
        (TypeSection::new(), FunctionSection::new(), ExportSection::new(), CodeSection::new());
    types.ty().function([], []);
    for number in 0..parts.types {
        types.ty().function(vec![ValType::I32; number as usize % 100], []);
    }
    for body in parts.bodies {
        functions.function(0);
        code.function(body);
    }
    let (mut tables, mut memories) = (TableSection::new(), MemorySection::new());
    for _ in 0..parts.tables {
        tables.table(wasm::table());
    }
    for _ in 0..parts.memories {
        memories.memory(wasm::memory(1));
    }
    exports.export("run", ExportKind::Func, 0);
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&tables).section(&memories);
    module.section(&exports).section(&code);
    module
}

fn component(module: &Module, instances: usize) -> Vec<u8> {
    with_preprocess(ComponentBuilder::default(), module, instances)
}

/// `component` with instances of `module`, the last of which exports a function `preprocess`.
fn with_preprocess(mut component: ComponentBuilder, module: &Module, instances: usize) -> Vec<u8> {
    let module = component.core_module(None, module);
    let mut last = 0;
    for _ in 0..instances {
        last = component.core_instantiate(None, module, [] as [(&str, ModuleArg); 0]);
    }
    let run = component.core_alias_export(None, last, "run", ExportKind::Func);
    let (ty, mut function) = component.type_function(None);
    function.params([] as [(&str, wasm_encoder::ComponentValType); 0]).result(None);
    let function = component.lift_func(None, run, ty, []);
    component.export("preprocess", ComponentExportKind::Func, function, None);
    component.finish()
}

/// A module whose component type has two packages, each of which names the other. The library that
/// reads the type recurses until the stack of its process is at its end.
pub(crate) fn with_endless_type() -> Vec<u8> {
    let guest = Guest::pre(|code| {
        honest(code);
        code.i32_const(ANSWER);
    });
    replaced(&guest.file(), b"plugin/log@0.1.0", b"plugin/log@0.1.1")
}

/// The file with one name replaced everywhere by another one of the same length.
pub(crate) fn replaced(file: &[u8], name: &[u8], other: &[u8]) -> Vec<u8> {
    assert_eq!(name.len(), other.len());
    let mut file = file.to_vec();
    let offsets: Vec<_> =
        file.windows(name.len()).enumerate().filter(|(_, at)| *at == name).map(|at| at.0).collect();
    assert!(!offsets.is_empty());
    offsets.iter().for_each(|at| file[*at..*at + other.len()].copy_from_slice(other));
    file
}
