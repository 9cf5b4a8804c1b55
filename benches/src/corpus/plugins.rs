//! Uploads that are small and compile for minutes.
//!
//! Each is a plugin with one more core module in its component. The module is never instantiated,
//! but the server compiles it.

use std::borrow::Cow;

use wasm_encoder::{
    BlockType, CodeSection, CustomSection, Encode, Function, FunctionSection, Module, TypeSection,
    ValType,
};

/// A component's section that is a core module.
const CORE_MODULE_SECTION: u8 = 1;

/// `component` with one more module in it.
fn with_module(component: &[u8], module: Module) -> Vec<u8> {
    let module = module.finish();
    let mut file = component.to_vec();
    file.push(CORE_MODULE_SECTION);
    module.len().encode(&mut file);
    file.extend(module);
    file
}

/// `component` made different from all others, because the server keeps compiled code by content.
pub fn distinct(component: &[u8], number: u64) -> Vec<u8> {
    let data = Cow::Owned(number.to_le_bytes().to_vec());
    let mut file = component.to_vec();
    wasm_encoder::ComponentSection::append_to_component(
        &CustomSection { name: "distinct".into(), data },
        &mut file,
    );
    file
}

/// `component` with a function of 40,000 loops in one another, in 280 KB.
pub fn nested_loops(component: &[u8]) -> Vec<u8> {
    const LOOPS: usize = 40_000;
    let mut function = Function::new([]);
    let mut code = function.instructions();
    for _ in 0..LOOPS {
        code.loop_(BlockType::Empty);
    }
    for _ in 0..LOOPS {
        code.local_get(0).br_if(0).end();
    }
    code.end();
    with_module(component, module(ValType::I32, vec![function]))
}

/// `component` with a function of 45,000 locals, all of them changed in a loop, in 465 KB.
pub fn many_locals(component: &[u8]) -> Vec<u8> {
    const LOCALS: u32 = 45_000;
    let mut function = Function::new([(LOCALS, ValType::I32)]);
    let mut code = function.instructions();
    code.loop_(BlockType::Empty);
    for local in 1..LOCALS {
        code.local_get(local).i32_const(1).i32_add().local_set(local);
    }
    code.local_get(0).br_if(0).end().end();
    with_module(component, module(ValType::I32, vec![function]))
}

/// A module of functions that take one parameter and return nothing.
fn module(parameter: ValType, functions: Vec<Function>) -> Module {
    let mut types = TypeSection::new();
    types.ty().function([parameter], []);
    let (mut declared, mut code) = (FunctionSection::new(), CodeSection::new());
    for function in &functions {
        declared.function(0);
        code.function(function);
    }
    let mut module = Module::new();
    module.section(&types).section(&declared).section(&code);
    module
}
