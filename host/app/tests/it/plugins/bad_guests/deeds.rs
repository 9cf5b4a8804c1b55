//! The deeds of guests that need more than one instruction.

use wasm_encoder::{BlockType, InstructionSink};

use crate::support::modules::{
    ANSWER, ANY, BODY, Guest, Import, LIST, MADE, MADE_HANDLE, OUTPUTS, POST_LOCAL, PRE_LOCAL,
    REALLOC, RUN, SHAPE, TEXT, TEXT_LEN, ZEROS, ZEROS_LEN, honest, make_tensor, prepared,
    responded, store,
};

type Sink<'a> = InstructionSink<'a>;

/// One page of memory, and more pages than there are.
const PAGE_BYTES: i32 = 65_536;
const ALL_PAGES: i32 = 65_535;

pub(crate) fn honest_pre(code: &mut Sink<'_>) {
    honest(code);
    code.i32_const(ANSWER);
}

pub(crate) fn honest_post(code: &mut Sink<'_>) {
    responded(code);
    code.i32_const(ANSWER);
}

/// A body that takes almost all memory and contains the answer itself.
pub(crate) fn whole_memory() -> Guest {
    Guest::post(|code| {
        responded(code);
        store(code, ANSWER + 24, 0);
        store(code, ANSWER + 28, 4 * PAGE_BYTES);
        code.i32_const(ANSWER);
    })
}

/// A name of 200,000 zeros.
pub(crate) fn long_name() -> Guest {
    Guest::pre(|code| {
        honest(code);
        store(code, LIST, PAGE_BYTES / 2);
        store(code, LIST + 4, 200_000);
        code.i32_const(ANSWER);
    })
}

pub(crate) fn blob_for_a_tensor() -> Guest {
    Guest::pre(|code| {
        honest(code);
        code.i32_const(LIST + 8).local_get(BODY).i32_store(ANY).i32_const(ANSWER);
    })
}

pub(crate) fn tensor_twice() -> Guest {
    Guest::pre(|code| {
        honest(code);
        store(code, ANSWER + 8, 2);
        store(code, LIST + 12, TEXT);
        store(code, LIST + 16, TEXT_LEN);
        code.i32_const(LIST + 20).i32_const(MADE_HANDLE).i32_load(ANY).i32_store(ANY);
        code.i32_const(ANSWER);
    })
}

fn drop_made(code: &mut Sink<'_>) {
    code.i32_const(MADE_HANDLE).i32_load(ANY).call(Import::TensorDrop.index());
}

pub(crate) fn dropped_once() -> Guest {
    Guest::pre(|code| {
        honest(code);
        drop_made(code);
        code.i32_const(ANSWER);
    })
}

pub(crate) fn dropped_twice() -> Guest {
    Guest::pre(|code| {
        make_tensor(code);
        drop_made(code);
        drop_made(code);
        code.i32_const(ANSWER);
    })
}

pub(crate) fn dropped_as_a_tensor() -> Guest {
    Guest::pre(|code| {
        code.local_get(BODY).call(Import::TensorDrop.index());
        honest_pre(code);
    })
}

pub(crate) fn asked_after_drop() -> Guest {
    Guest::pre(|code| {
        make_tensor(code);
        drop_made(code);
        code.i32_const(MADE_HANDLE).i32_load(ANY).i32_const(LIST);
        code.call(Import::TensorShape.index()).i32_const(ANSWER);
    })
}

pub(crate) fn asked_of_a_blob() -> Guest {
    Guest::pre(|code| {
        code.local_get(BODY).i32_const(LIST).call(Import::TensorData.index());
        honest_pre(code);
    })
}

/// The outputs are the model's: a list of name and handle.
pub(crate) fn output_dropped_twice() -> Guest {
    Guest::post(|code| {
        code.local_get(OUTPUTS).i32_load(wasm_encoder::MemArg { offset: 8, ..ANY });
        code.local_tee(POST_LOCAL).call(Import::TensorDrop.index());
        code.local_get(POST_LOCAL).call(Import::TensorDrop.index());
        honest_post(code);
    })
}

/// There are too few elements for the shape, so the host returns an error and no handle.
pub(crate) fn error_for_a_tensor() -> Guest {
    Guest::pre(|code| {
        code.i32_const(11).i32_const(SHAPE).i32_const(4);
        code.i32_const(ZEROS).i32_const(ZEROS_LEN - 4).i32_const(MADE);
        code.call(Import::TensorCreate.index());
        prepared(code);
        code.i32_const(ANSWER);
    })
}

/// A tensor of one dimension. Its shape, its elements and the result are at the same address.
pub(crate) fn shape_in_the_elements() -> Guest {
    Guest::pre(|code| {
        store(code, ZEROS, 2);
        code.i32_const(11).i32_const(ZEROS).i32_const(1);
        code.i32_const(ZEROS).i32_const(8).i32_const(ZEROS);
        code.call(Import::TensorCreate.index());
        code.i32_const(MADE_HANDLE).i32_const(ZEROS + 8).i32_load(ANY).i32_store(ANY);
        prepared(code);
        code.i32_const(ANSWER);
    })
}

pub(crate) fn blob_read() -> Guest {
    Guest::pre(|code| {
        for (offset, len) in [(-1, -1), (0, -1), (-1, 1), (i64::MAX, i64::MAX)] {
            code.local_get(BODY).i64_const(offset).i64_const(len).i32_const(MADE);
            code.call(Import::BlobRead.index());
        }
        code.local_get(BODY).call(Import::BlobLen.index()).drop();
        code.local_get(BODY).call(Import::BlobDrop.index());
        honest_pre(code);
    })
}

pub(crate) fn top_k() -> Guest {
    Guest::pre(|code| {
        make_tensor(code);
        for (row, k) in [(0, -1), (-1, -1), (-1, 0)] {
            code.i32_const(MADE_HANDLE).i32_load(ANY).i32_const(row).i32_const(k).i32_const(LIST);
            code.call(Import::TensorTopK.index());
        }
        code.i32_const(MADE_HANDLE).i32_load(ANY).i64_const(-1).i64_const(-1).i32_const(LIST);
        code.call(Import::TensorRead.index());
        honest_pre(code);
    })
}

pub(crate) fn forever(code: &mut Sink<'_>) {
    loops(code);
    code.unreachable();
}

pub(crate) fn loops(code: &mut Sink<'_>) {
    code.loop_(BlockType::Empty).br(0).end();
}

pub(crate) fn realloc_again(code: &mut Sink<'_>) {
    code.local_get(0).local_get(1).local_get(2).local_get(3).call(REALLOC);
}

/// The preprocessor itself, called with any parameters.
pub(crate) fn run_again(code: &mut Sink<'_>) {
    (0..12).for_each(|_| {
        code.i32_const(0);
    });
    code.call(RUN);
}

/// The preprocessor itself, called with its own parameters.
pub(crate) fn without_bottom(code: &mut Sink<'_>) {
    (0..12).for_each(|param| {
        code.local_get(param);
    });
    code.call(RUN);
}

pub(crate) fn call_the_host(code: &mut Sink<'_>) {
    make_tensor(code);
    code.i32_const(8192);
}

/// Calls the host while the host is writing its result.
pub(crate) fn call_the_host_late(code: &mut Sink<'_>) {
    code.i32_const(MADE_HANDLE).i32_load(ANY).i32_eqz().if_(BlockType::Empty).else_();
    make_tensor(code);
    code.end().i32_const(16_384);
}

pub(crate) fn asks_for_data(code: &mut Sink<'_>) {
    make_tensor(code);
    code.i32_const(MADE_HANDLE).i32_load(ANY).i32_const(LIST);
    code.call(Import::TensorData.index()).i32_const(ANSWER);
}

pub(crate) fn call_null(code: &mut Sink<'_>) {
    // The type of `log.write`.
    (0..5).for_each(|_| {
        code.i32_const(0);
    });
    code.i32_const(0).call_indirect(0, Import::LogWrite.index()).i32_const(ANSWER);
}

pub(crate) fn fill_beyond(code: &mut Sink<'_>) {
    code.i32_const(ZEROS).i32_const(1).i32_const(-1).memory_fill(0).i32_const(ANSWER);
}

/// Grow the memory by a page until that fails, and write to each page.
fn grow_memory(code: &mut Sink<'_>) {
    code.loop_(BlockType::Empty).i32_const(1).memory_grow(0).local_tee(PRE_LOCAL);
    code.i32_const(-1).i32_ne().if_(BlockType::Empty);
    code.local_get(PRE_LOCAL).i32_const(PAGE_BYTES).i32_mul().i32_const(1).i32_store(ANY);
    code.br(1).end().end();
}

pub(crate) fn grow_memory_and_answer(code: &mut Sink<'_>) {
    grow_memory(code);
    honest_pre(code);
}

pub(crate) fn grow_memory_and_trap(code: &mut Sink<'_>) {
    grow_memory(code);
    code.unreachable();
}

pub(crate) fn grow_memory_at_once(code: &mut Sink<'_>) {
    code.i32_const(ALL_PAGES).memory_grow(0).drop().unreachable();
}

fn grow_table(code: &mut Sink<'_>) {
    code.loop_(BlockType::Empty).ref_null(wasm_encoder::HeapType::FUNC).i32_const(64);
    code.table_grow(0).i32_const(-1).i32_ne().br_if(0).end();
}

pub(crate) fn grow_table_and_answer(code: &mut Sink<'_>) {
    grow_table(code);
    honest_pre(code);
}

pub(crate) fn grow_table_and_trap(code: &mut Sink<'_>) {
    grow_table(code);
    code.unreachable();
}
