//! A guest whose program is its request's body. The body chooses the calls of the host and their
//! parameters, among them parameters that no compiler would write.
//!
//! The program is a row of steps of [`STEP_BYTES`] bytes: the number of a function, and one byte
//! for each of its parameters. The functions are those of all interfaces that a plugin may import,
//! in the order of `wit/`, and two of the guest's own: one stores a word, one returns. A byte below
//! 128 stands for itself. A byte from 128 on stands for one of the 128 words at the beginning of
//! memory. The first words are the call's handles and the result of the last function; the upper
//! half begins with numbers that are at some edge. A function that writes its result into memory
//! gets the address from the program, too, so a result can be a word of a later step.

use std::path::Path;

use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, DataSection, EntityType, ExportKind, ExportSection,
    Function, FunctionSection, GlobalSection, GlobalType, ImportSection, InstructionSink, MemArg,
    MemorySection, MemoryType, Module, TypeSection, ValType,
};
use wit_component::StringEncoding;
use wit_parser::abi::{AbiVariant, WasmType};
use wit_parser::{Resolve, TypeDefKind, WorldId, WorldItem};

/// The longest list of parameters of a function, and the number of the function.
const STEP_BYTES: i32 = 1 + PARAMS_MAX;
const PARAMS_MAX: i32 = 12;

/// The longest program, in bytes.
const PROGRAM_BYTES_MAX: i64 = 1 << 13;

/// The number of words, and those with a meaning: the handles of context and request, the address
/// of the answer, and the result of the last function.
const WORDS: i32 = 128;
const CONTEXT: i32 = 0;
const REQUEST: i32 = 1;
const RETURNED: i32 = 2;
const RESULT: i32 = 3;

/// Addresses: an answer of no inputs and no state, where the body is read to, and the memory that
/// `cabi_realloc` gives out. The program is the first that it gives out.
const ANSWER: i32 = 4 * WORDS;
const READ: i32 = ANSWER + 64;
const HEAP: i32 = 1024;

/// The memory that it begins with.
const PAGES: i32 = 16;
const MEMORY_BYTES: i32 = PAGES << 16;

/// The words from the middle on.
const EDGES: [i32; 32] = [
    HEAP,
    HEAP + 4,
    HEAP + STEP_BYTES,
    HEAP + 256,
    MEMORY_BYTES - 4,
    MEMORY_BYTES,
    -1,
    -4,
    i32::MIN,
    i32::MAX,
    255,
    256,
    784,
    1023,
    1024,
    3136,
    4096,
    65_535,
    65_536,
    100_000,
    1 << 20,
    (1 << 20) + 1,
    2 << 20,
    1 << 24,
    1 << 28,
    1 << 30,
    0x1555_5556,
    0x2000_0001,
    0x4000_0000,
    0x7fff_fffe,
    -2,
    -65_536,
];

const ANY: MemArg = MemArg { offset: 0, align: 0, memory_index: 0 };

/// A function of the host.
struct Import {
    module: String,
    name: String,
    params: Vec<ValType>,
    results: Vec<ValType>,
}

/// The component type's source, and the functions that it offers.
struct World {
    resolve: Resolve,
    world: WorldId,
    imports: Vec<Import>,
}

/// The file: a core module that carries its component type.
pub(crate) fn file() -> Vec<u8> {
    let world = World::read();
    world.file_of(module(&world.imports, &|code| interpret(code, &world.imports)))
}

/// The file of a guest that imports nothing and ends each call. It is quick to compile.
pub(crate) fn smallest_file() -> Vec<u8> {
    World::read().file_of(module(&[], &|code| {
        code.unreachable();
    }))
}

/// The section of a core module that has its component type.
pub(crate) fn type_section() -> Vec<u8> {
    let (empty, module) = (Module::new().finish(), World::read().file_of(Module::new()));
    module[empty.len()..].to_vec()
}

impl World {
    fn read() -> Self {
        let mut resolve = Resolve::new();
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let (package, _) = resolve.push_path(wit).expect("the contract");
        let world = resolve.select_world(&[package], Some("preprocessor")).expect("its world");
        let mut imports = Vec::new();
        for item in resolve.worlds[world].imports.values() {
            let WorldItem::Interface { id, .. } = item else { continue };
            let module = resolve.id_of(*id).expect("an interface with a name");
            let interface = &resolve.interfaces[*id];
            for function in interface.functions.values() {
                let signature = resolve.wasm_signature(AbiVariant::GuestImport, function);
                let of = |types: Vec<WasmType>| types.into_iter().map(value_type).collect();
                let (params, results) = (of(signature.params), of(signature.results));
                let (module, name) = (module.clone(), function.name.clone());
                imports.push(Import { module, name, params, results });
            }
            for (name, id) in &interface.types {
                if matches!(resolve.types[*id].kind, TypeDefKind::Resource) {
                    let (params, results) = (vec![ValType::I32], Vec::new());
                    let name = format!("[resource-drop]{name}");
                    imports.push(Import { module: module.clone(), name, params, results });
                }
            }
        }
        let most = imports.iter().map(|import| import.params.len()).max();
        assert!(most <= Some(PARAMS_MAX as usize), "a function has {most:?} parameters");
        Self { resolve, world, imports }
    }

    /// The module with its component type in it.
    fn file_of(&self, module: Module) -> Vec<u8> {
        let (mut file, encoding) = (module.finish(), StringEncoding::UTF8);
        wit_component::embed_component_metadata(&mut file, &self.resolve, self.world, encoding)
            .expect("the world has a component type");
        file
    }
}

fn value_type(flat: WasmType) -> ValType {
    match flat {
        WasmType::I32 | WasmType::Pointer | WasmType::Length => ValType::I32,
        WasmType::I64 | WasmType::PointerOrI64 => ValType::I64,
        WasmType::F32 => ValType::F32,
        WasmType::F64 => ValType::F64,
    }
}

type Code<'a> = &'a dyn Fn(&mut InstructionSink<'_>);

/// A function of the module's own: its parameters, its results, its further locals, its code.
type Own<'a> = (Vec<ValType>, Vec<ValType>, u32, Code<'a>);

/// A module of which `preprocess` is this code.
fn module(imports: &[Import], preprocess: Code<'_>) -> Module {
    const I: ValType = ValType::I32;
    let imported = imports.len() as u32;
    let (mut types, mut section) = (TypeSection::new(), ImportSection::new());
    for (index, import) in imports.iter().enumerate() {
        types.ty().function(import.params.iter().copied(), import.results.iter().copied());
        section.import(&import.module, &import.name, EntityType::Function(index as u32));
    }
    let own_functions: [Own<'_>; 3] = [
        (vec![I; 2], vec![I], 4, preprocess),
        (vec![I; 4], vec![I], 1, &bump),
        (vec![I], vec![I], 1, &argument),
    ];
    let (mut functions, mut codes) = (FunctionSection::new(), CodeSection::new());
    for (index, (params, results, locals, code)) in own_functions.into_iter().enumerate() {
        types.ty().function(params, results);
        functions.function(imported + index as u32);
        let mut body = Function::new([(locals, I)]);
        let mut sink = body.instructions();
        code(&mut sink);
        sink.end();
        codes.function(&body);
    }
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: PAGES as u64,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut globals = GlobalSection::new();
    let heap = GlobalType { val_type: I, mutable: true, shared: false };
    globals.global(heap, &ConstExpr::i32_const(HEAP));
    let mut exports = ExportSection::new();
    exports.export("preprocess", ExportKind::Func, imported);
    exports.export("cabi_realloc", ExportKind::Func, imported + 1);
    exports.export("memory", ExportKind::Memory, 0);
    let mut data = DataSection::new();
    data.active(0, &ConstExpr::i32_const(2 * WORDS), EDGES.map(i32::to_le_bytes).concat());
    let mut module = Module::new();
    module.section(&types).section(&section).section(&functions).section(&memories);
    module.section(&globals).section(&exports).section(&codes).section(&data);
    module
}

/// Locals of [`interpret`] after its parameters: the place in the program, its end, the number of
/// the function, and a result.
const AT: u32 = 2;
const END: u32 = 3;
const NUMBER: u32 = 4;
const VALUE: u32 = 5;

/// Read the program, and do its steps.
fn interpret(code: &mut InstructionSink<'_>, imports: &[Import]) {
    let imported = imports.len() as u32;
    let number_of = |name: &str| {
        let found = imports.iter().position(|import| import.name == name);
        found.unwrap_or_else(|| panic!("there is no {name}")) as u32
    };
    for (word, local) in [(CONTEXT, 0), (REQUEST, 1)] {
        code.i32_const(4 * word).local_get(local).i32_store(ANY);
    }
    code.i32_const(4 * RETURNED).i32_const(ANSWER).i32_store(ANY);
    code.local_get(1).call(number_of("[method]request.body")).local_tee(VALUE);
    code.i64_const(0).i64_const(PROGRAM_BYTES_MAX).i32_const(READ);
    code.call(number_of("[method]blob.read"));
    code.local_get(VALUE).call(number_of("[resource-drop]blob"));
    code.i32_const(READ).i32_load(ANY).local_tee(AT);
    code.i32_const(READ + 4).i32_load(ANY).i32_add().local_set(END);
    code.block(BlockType::Empty).loop_(BlockType::Empty);
    code.local_get(AT).i32_const(STEP_BYTES).i32_add().local_get(END).i32_gt_u().br_if(1);
    // Two more numbers than functions: to store a word, and to return.
    code.local_get(AT).i32_load8_u(ANY).i32_const(imported as i32 + 2).i32_rem_u();
    code.local_set(NUMBER);
    for (index, import) in imports.iter().enumerate() {
        code.local_get(NUMBER).i32_const(index as i32).i32_eq().if_(BlockType::Empty);
        call(code, imported, index as u32, import);
        code.end();
    }
    code.local_get(NUMBER).i32_const(imported as i32).i32_eq().if_(BlockType::Empty);
    store_a_word(code);
    code.end();
    code.local_get(NUMBER).i32_const(imported as i32 + 1).i32_eq().br_if(1);
    code.local_get(AT).i32_const(STEP_BYTES).i32_add().local_set(AT).br(0);
    code.end().end();
    // Handles that were lent are given back.
    for (word, name) in [(CONTEXT, "[resource-drop]context"), (REQUEST, "[resource-drop]request")] {
        code.i32_const(4 * word).i32_load(ANY).call(number_of(name));
    }
    code.i32_const(4 * RETURNED).i32_load(ANY);
}

/// Call a function of the host with the words that the step has for it.
fn call(code: &mut InstructionSink<'_>, imported: u32, index: u32, import: &Import) {
    const ARGUMENT: u32 = 2;
    for (place, param) in import.params.iter().enumerate() {
        code.local_get(AT).i32_const(1 + place as i32).i32_add().call(imported + ARGUMENT);
        match param {
            ValType::I64 => {
                code.i64_extend_i32_u();
            }
            ValType::F32 => {
                code.f32_convert_i32_s();
            }
            ValType::F64 => {
                code.f64_convert_i32_s();
            }
            _ => {}
        }
    }
    code.call(index);
    match import.results.first() {
        Some(ValType::I32) => {
            code.local_set(VALUE).i32_const(4 * RESULT).local_get(VALUE).i32_store(ANY);
        }
        Some(_) => {
            code.drop();
        }
        None => {}
    }
}

/// Store the four bytes after the first one at the word that the first one names.
fn store_a_word(code: &mut InstructionSink<'_>) {
    code.local_get(AT).i32_load8_u(MemArg { offset: 1, ..ANY }).i32_const(WORDS - 1).i32_and();
    code.i32_const(2).i32_shl();
    code.local_get(AT).i32_load(MemArg { offset: 2, ..ANY }).i32_store(ANY);
}

/// `cabi_realloc`: gives out what comes next, aligned and never twice.
fn bump(code: &mut InstructionSink<'_>) {
    const ALIGN: u32 = 2;
    const LEN: u32 = 3;
    const FOUND: u32 = 4;
    code.global_get(0).local_get(ALIGN).i32_add().i32_const(1).i32_sub();
    code.i32_const(0).local_get(ALIGN).i32_sub().i32_and().local_tee(FOUND);
    code.local_get(LEN).i32_add().global_set(0).local_get(FOUND);
}

/// The value of the byte at this address: itself, or a word.
fn argument(code: &mut InstructionSink<'_>) {
    const BYTE: u32 = 1;
    code.local_get(0).i32_load8_u(ANY).local_tee(BYTE);
    code.i32_const(WORDS).i32_lt_u().if_(BlockType::Result(ValType::I32));
    code.local_get(BYTE);
    code.else_();
    code.local_get(BYTE).i32_const(WORDS).i32_sub().i32_const(2).i32_shl().i32_load(ANY);
    code.end();
}
