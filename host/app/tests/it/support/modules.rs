//! Plugins assembled instruction by instruction, as no compiler would do it: core modules that
//! carry their component type and implement the canonical ABI themselves. The server makes
//! components of them. They are built for contract 0.1, whose functions are those of later ones.
//!
//! A guest begins as an honest one; a test replaces a part of it.

use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, DataSection, EntityType, ExportKind, ExportSection,
    Function, FunctionSection, GlobalSection, GlobalType, ImportSection, InstructionSink, MemArg,
    MemorySection, Module, StartSection, TableSection, TypeSection, ValType,
};
use wit_component::StringEncoding;

use super::wasm;

/// A function's instructions, without the last `end`.
pub(crate) type Code = fn(&mut InstructionSink<'_>);

/// What a module imports, in order: an instruction calls one by its index.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Import {
    TensorCreate,
    TensorDrop,
    TensorShape,
    TensorData,
    TensorRead,
    TensorTopK,
    BlobLen,
    BlobRead,
    BlobDrop,
    LogWrite,
    PixelsDecode,
    TensorSoftmax,
}

impl Import {
    pub(crate) const fn index(self) -> u32 {
        self as u32
    }
}

type Signature = (&'static [ValType], &'static [ValType]);

const I: ValType = ValType::I32;
const L: ValType = ValType::I64;

const IMPORTS: [(&str, &str, Signature); 12] = [
    ("tensors", "[static]tensor.create", (&[I; 6], &[])),
    ("tensors", "[resource-drop]tensor", (&[I], &[])),
    ("tensors", "[method]tensor.shape", (&[I; 2], &[])),
    ("tensors", "[method]tensor.data", (&[I; 2], &[])),
    ("tensors", "[method]tensor.read", (&[I, L, L, I], &[])),
    ("tensors", "[method]tensor.top-k", (&[I; 4], &[])),
    ("types", "[method]blob.len", (&[I], &[L])),
    ("types", "[method]blob.read", (&[I, L, L, I], &[])),
    ("types", "[resource-drop]blob", (&[I], &[])),
    ("log", "write", (&[I; 5], &[])),
    ("image", "[static]pixels.decode", (&[I; 4], &[])),
    ("tensors", "[method]tensor.softmax", (&[I; 2], &[])),
];

/// The functions of the module itself.
pub(crate) const RUN: u32 = IMPORTS.len() as u32;
pub(crate) const REALLOC: u32 = RUN + 1;

/// Parameters of `preprocess`, and the first local that is none.
const PRE_PARAMS: usize = 12;
/// The handle of the request's body.
pub(crate) const BODY: u32 = 9;
/// Parameters of `postprocess`: outputs and state, each a pointer and a length.
const POST_PARAMS: usize = 4;
pub(crate) const OUTPUTS: u32 = 0;
const STATE_LEN: u32 = 3;

/// Where things lie in memory. Answers come first, then constants, then 3136 bytes of zeros, then
/// what `cabi_realloc` gives out.
pub(crate) const ANSWER: i32 = 256;
pub(crate) const LIST: i32 = 320;
pub(crate) const MADE: i32 = 512;
/// The handle of the tensor made last.
pub(crate) const MADE_HANDLE: i32 = MADE + 8;
pub(crate) const NAME: i32 = 1024;
pub(crate) const SHAPE: i32 = 1040;
/// Bytes that are not valid UTF-8.
pub(crate) const NO_TEXT: i32 = 1056;
pub(crate) const TEXT: i32 = 1064;
pub(crate) const TEXT_LEN: i32 = 10;
pub(crate) const ZEROS: i32 = 4096;
pub(crate) const ZEROS_LEN: i32 = 3136;
const HEAP: i32 = 8192;
const CONSTANTS: &[u8] =
    b"input\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\x1c\0\0\0\x1c\0\0\0\xff\xfe\xfd\xfc\0\0\0\0text/plain";

/// `float32`, among the dtypes.
pub(crate) const FLOAT32: i32 = 11;

/// How large the memory begins.
const PAGES: u64 = 4;

pub(crate) const ANY: MemArg = MemArg { offset: 0, align: 0, memory_index: 0 };

/// A description of a module.
#[derive(Clone)]
pub(crate) struct Guest {
    world: &'static str,
    /// What it does; where there are several, the one that the call says.
    runs: Vec<Code>,
    realloc: Option<Code>,
    post_return: Option<Code>,
    start: Option<Code>,
}

impl Guest {
    /// A preprocessor, which leaves the address of its answer on the stack.
    pub(crate) fn pre(run: Code) -> Self {
        let runs = vec![run];
        Self { world: "preprocessor", runs, realloc: None, post_return: None, start: None }
    }

    /// A postprocessor, likewise.
    pub(crate) fn post(run: Code) -> Self {
        Self { world: "postprocessor", ..Self::pre(run) }
    }

    /// With another `cabi_realloc`.
    pub(crate) fn realloc(self, realloc: Code) -> Self {
        Self { realloc: Some(realloc), ..self }
    }

    /// With a function that is called when the answer was read.
    pub(crate) fn post_return(self, code: Code) -> Self {
        Self { post_return: Some(code), ..self }
    }

    /// With a function that is called before all others.
    pub(crate) fn start(self, code: Code) -> Self {
        Self { start: Some(code), ..self }
    }

    /// Its place in a pipeline.
    pub(crate) fn role(&self) -> &'static str {
        if self.world == "preprocessor" { "pre" } else { "post" }
    }

    /// How many things it can do.
    pub(crate) fn deeds(&self) -> usize {
        self.runs.len()
    }

    /// Take in what the `other` does, so that one module is compiled for both. That is not done
    /// where the host or the module runs code of one of them outside its call.
    pub(crate) fn takes_in(&mut self, other: &Self) -> bool {
        let is_plain = |guest: &Self| {
            guest.realloc.is_none() && guest.post_return.is_none() && guest.start.is_none()
        };
        let takes = is_plain(self) && is_plain(other) && self.world == other.world;
        if takes {
            self.runs.extend_from_slice(&other.runs);
        }
        takes
    }

    /// The file.
    pub(crate) fn file(&self) -> Vec<u8> {
        self.file_in(StringEncoding::UTF8)
    }

    /// The file of a guest whose texts are encoded so.
    pub(crate) fn file_in(&self, encoding: StringEncoding) -> Vec<u8> {
        wasm::with_type(self.module().finish(), "0.1.0", &[self.world], encoding)
    }

    fn module(&self) -> Module {
        let (name, params) = match self.world {
            "preprocessor" => ("preprocess", PRE_PARAMS),
            _ => ("postprocess", POST_PARAMS),
        };
        let run = |code: &mut InstructionSink<'_>| match &self.runs[..] {
            [run] => run(code),
            runs => choose(code, self.role(), params, runs.len()),
        };
        type FunctionEntry<'a> = (Vec<ValType>, Vec<ValType>, &'a dyn Fn(&mut InstructionSink<'_>));
        let mut entries: Vec<FunctionEntry<'_>> = vec![
            (vec![I; params], vec![I], &run),
            (vec![I; 4], vec![I], self.realloc.as_ref().unwrap_or(&(bump as Code))),
            (vec![I], vec![], self.post_return.as_ref().unwrap_or(&(nothing as Code))),
            (vec![], vec![], self.start.as_ref().unwrap_or(&(nothing as Code))),
        ];
        if self.runs.len() > 1 {
            entries.extend(self.runs.iter().map(|run| (vec![I; params], vec![I], run as _)));
        }
        let (mut types, mut imports) = (TypeSection::new(), ImportSection::new());
        for (index, (interface, function, (params, results))) in IMPORTS.iter().enumerate() {
            types.ty().function(params.iter().copied(), results.iter().copied());
            let interface = format!("gristmill:plugin/{interface}@0.1.0");
            imports.import(&interface, function, EntityType::Function(index as u32));
        }
        let (mut functions, mut codes) = (FunctionSection::new(), CodeSection::new());
        for (index, (params, results, code)) in entries.into_iter().enumerate() {
            types.ty().function(params, results);
            functions.function(RUN + index as u32);
            let mut body = Function::new([(LOCALS, I)]);
            let mut sink = body.instructions();
            code(&mut sink);
            sink.end();
            codes.function(&body);
        }
        let mut exports = ExportSection::new();
        exports.export(name, ExportKind::Func, RUN).export("memory", ExportKind::Memory, 0);
        exports.export("cabi_realloc", ExportKind::Func, REALLOC);
        if self.post_return.is_some() {
            exports.export(&format!("cabi_post_{name}"), ExportKind::Func, RUN + 2);
        }
        let (mut memories, mut tables) = (MemorySection::new(), TableSection::new());
        memories.memory(wasm::memory(PAGES));
        tables.table(wasm::table());
        let mut globals = GlobalSection::new();
        let heap = GlobalType { val_type: I, mutable: true, shared: false };
        globals.global(heap, &ConstExpr::i32_const(HEAP));
        let mut data = DataSection::new();
        data.active(0, &ConstExpr::i32_const(NAME), CONSTANTS.iter().copied());
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions).section(&tables);
        module.section(&memories).section(&globals).section(&exports);
        if self.start.is_some() {
            module.section(&StartSection { function_index: RUN + 3 });
        }
        module.section(&codes).section(&data);
        module
    }
}

/// Locals that each function has besides its parameters.
const LOCALS: u32 = 2;
pub(crate) const PRE_LOCAL: u32 = PRE_PARAMS as u32;
pub(crate) const POST_LOCAL: u32 = POST_PARAMS as u32;

fn nothing(_code: &mut InstructionSink<'_>) {}

/// Do the deed whose number, from 1 on, is the length of a preprocessor's body or of a
/// postprocessor's state.
fn choose(code: &mut InstructionSink<'_>, role: &str, params: usize, deeds: usize) {
    let (params, deeds) = (params as u32, deeds as u32);
    if role == "pre" {
        code.local_get(BODY).call(Import::BlobLen.index()).i32_wrap_i64();
    } else {
        code.local_get(STATE_LEN);
    }
    code.local_set(params);
    for deed in 0..deeds {
        code.local_get(params).i32_const(deed as i32 + 1).i32_eq().if_(BlockType::Empty);
        (0..params).for_each(|param| {
            code.local_get(param);
        });
        code.call(RUN + 4 + deed).return_().end();
    }
    // A number that there is not must not look like a deed that traps.
    if role == "pre" {
        honest(code);
    } else {
        responded(code);
    }
    code.i32_const(ANSWER);
}

/// A preprocessor whose state is as long as its body.
pub(crate) fn numbering() -> Guest {
    Guest::pre(|code| {
        honest(code);
        store(code, ANSWER + 12, ZEROS);
        code.i32_const(ANSWER + 16).local_get(BODY).call(Import::BlobLen.index());
        code.i32_wrap_i64().i32_store(ANY).i32_const(ANSWER);
    })
}

/// An allocator that gives out what comes next: aligned, and never twice.
fn bump(code: &mut InstructionSink<'_>) {
    const ALIGN: u32 = 2;
    const LEN: u32 = 3;
    code.global_get(0).local_get(ALIGN).i32_add().i32_const(1).i32_sub();
    code.i32_const(0).local_get(ALIGN).i32_sub().i32_and().local_tee(4);
    code.local_get(LEN).i32_add().global_set(0).local_get(4);
}

/// Store `value` at `address`.
pub(crate) fn store(code: &mut InstructionSink<'_>, address: i32, value: i32) {
    code.i32_const(address).i32_const(value).i32_store(ANY);
}

/// Make the blank image that the digits model takes.
pub(crate) fn make_tensor(code: &mut InstructionSink<'_>) {
    code.i32_const(FLOAT32).i32_const(SHAPE).i32_const(4);
    code.i32_const(ZEROS).i32_const(ZEROS_LEN).i32_const(MADE);
    code.call(Import::TensorCreate.index());
}

/// Write a preprocessor's answer at [`ANSWER`]: the tensor made last, named `input`.
pub(crate) fn prepared(code: &mut InstructionSink<'_>) {
    store(code, ANSWER, 0);
    store(code, ANSWER + 4, LIST);
    store(code, ANSWER + 8, 1);
    store(code, LIST, NAME);
    store(code, LIST + 4, 5);
    code.i32_const(LIST + 8).i32_const(MADE_HANDLE).i32_load(ANY).i32_store(ANY);
}

/// An honest preprocessor, up to its answer's address.
pub(crate) fn honest(code: &mut InstructionSink<'_>) {
    make_tensor(code);
    prepared(code);
}

/// An honest postprocessor, likewise: status 200, `text/plain` as content type and body.
pub(crate) fn responded(code: &mut InstructionSink<'_>) {
    store(code, ANSWER, 0);
    store(code, ANSWER + 4, 200);
    for pointer in [ANSWER + 8, ANSWER + 24] {
        store(code, pointer, TEXT);
        store(code, pointer + 4, TEXT_LEN);
    }
}
