//! Components that no toolchain makes, and variants of known plugins.
//!
//! The components export a function `preprocess` without parameters. A server compiles them and
//! then refuses them, because they do not fit the contract.

use wasm_encoder::{
    BlockType, CodeSection, ComponentBuilder, ComponentExportKind, ExportKind, ExportSection,
    Function, FunctionSection, Instruction, Module, ModuleArg, TypeSection, ValType,
};

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

/// A module of functions without parameters and results. The first one is exported.
fn module(bodies: &[Function]) -> Module {
    let (mut types, mut functions, mut exports, mut code) =
        (TypeSection::new(), FunctionSection::new(), ExportSection::new(), CodeSection::new());
    types.ty().function([], []);
    for body in bodies {
        functions.function(0);
        code.function(body);
    }
    exports.export("run", ExportKind::Func, 0);
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&exports).section(&code);
    module
}

fn component(module: &Module, instances: usize) -> Vec<u8> {
    let mut component = ComponentBuilder::default();
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
