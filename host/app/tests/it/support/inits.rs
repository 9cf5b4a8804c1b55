//! Plugins with an `init` that is assembled by hand.

use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, DataSection, EntityType, ExportKind, ExportSection,
    Function, FunctionSection, ImportSection, Instruction, InstructionSink, MemorySection, Module,
    TypeSection, ValType,
};
use wit_component::StringEncoding;

use super::wasm;

/// A version of the contract with `init`, and its folder below `wit/`.
#[derive(Clone, Copy)]
pub(crate) struct Contract {
    version: &'static str,
    folder: &'static str,
}

pub(crate) const V0_2: Contract = Contract { version: "0.2.0", folder: "0.2.0" };
pub(crate) const V0_3: Contract = Contract { version: "0.3.0", folder: "" };

/// The instructions of `init`, which returns the address of its result.
pub(crate) type Init = fn(&mut InstructionSink<'_>);

/// The addresses of two results of `init`: success, and the error "no words".
const SUCCESS: i32 = 32;
const FAILURE: i32 = 64;

pub(crate) fn succeeds(code: &mut InstructionSink<'_>) {
    code.i32_const(SUCCESS);
}

pub(crate) fn fails(code: &mut InstructionSink<'_>) {
    code.i32_const(FAILURE);
}

pub(crate) fn traps(code: &mut InstructionSink<'_>) {
    code.unreachable();
}

pub(crate) fn loops(code: &mut InstructionSink<'_>) {
    code.loop_(BlockType::Empty).br(0).end().i32_const(SUCCESS);
}

/// Calls a function that `init` does not have: `tensor.create` of nothing.
pub(crate) fn reads_a_tensor(code: &mut InstructionSink<'_>) {
    (0..6).for_each(|_| {
        code.i32_const(0);
    });
    code.call(0).i32_const(SUCCESS);
}

/// Takes more memory than a plugin may have.
pub(crate) fn grows(code: &mut InstructionSink<'_>) {
    code.i32_const(5000).memory_grow(0).drop().i32_const(SUCCESS);
}

/// A preprocessor with this `init`, of a version of the contract.
pub(crate) fn with_init(init: Init, contract: Contract) -> Vec<u8> {
    const I: ValType = ValType::I32;
    let mut types = TypeSection::new();
    for (params, results) in [(6, 0), (0, 1), (2, 1), (4, 1)] {
        types.ty().function(vec![I; params], vec![I; results]);
    }
    let mut imports = ImportSection::new();
    let tensors = format!("gristmill:plugin/tensors@{}", contract.version);
    imports.import(&tensors, "[static]tensor.create", EntityType::Function(0));
    let (mut functions, mut codes) = (FunctionSection::new(), CodeSection::new());
    let zero = |code: &mut InstructionSink<'_>| {
        code.i32_const(0);
    };
    type Body<'a> = (u32, &'a dyn Fn(&mut InstructionSink<'_>));
    let bodies: [Body<'_>; 3] = [(1, &init), (2, &zero), (3, &zero)];
    for (ty, body) in bodies {
        functions.function(ty);
        let mut function = Function::new([]);
        body(&mut function.instructions());
        function.instruction(&Instruction::End);
        codes.function(&function);
    }
    let mut memories = MemorySection::new();
    memories.memory(wasm::memory(1));
    let mut exports = ExportSection::new();
    exports.export("init", ExportKind::Func, 1).export("preprocess", ExportKind::Func, 2);
    exports.export("cabi_realloc", ExportKind::Func, 3).export("memory", ExportKind::Memory, 0);
    let mut data = DataSection::new();
    // An error: the discriminant, and where its text is.
    let failure = [1, 128, 8].map(i32::to_le_bytes).concat();
    data.active(0, &ConstExpr::i32_const(FAILURE), failure);
    data.active(0, &ConstExpr::i32_const(128), *b"no words");
    let mut module = Module::new();
    module.section(&types).section(&imports).section(&functions).section(&memories);
    module.section(&exports).section(&codes).section(&data);
    let worlds = ["preprocessor", "initializer"];
    wasm::with_type(module.finish(), contract.folder, &worlds, StringEncoding::UTF8)
}
