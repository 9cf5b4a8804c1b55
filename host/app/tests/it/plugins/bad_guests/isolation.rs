//! Guests that leave marks in all of their memory, and guests that look for them.

use wasm_encoder::{BlockType, InstructionSink};

use super::deeds::honest_pre;
use super::run::{case, run};
use crate::support::deeds::HARMLESS;
use crate::support::modules::{ANY, Guest, PRE_LOCAL};

const ROUNDS: usize = 40;

/// Nearly all memory that a call may have.
const PAGES: i32 = 900;

/// The memory behind everything that the guest and the host write during a harmless call.
const BEGIN: i32 = 16_384;

/// No constant of the guests: it is not in their memory unless it was left there.
const MARK: i32 = 0xa7;

/// Push the size of the memory in bytes.
fn end(code: &mut InstructionSink<'_>) {
    code.memory_size(0).i32_const(16).i32_shl();
}

fn mark(code: &mut InstructionSink<'_>) {
    code.i32_const(PAGES).memory_grow(0).drop();
    code.i32_const(BEGIN).i32_const(MARK);
    end(code);
    code.i32_const(BEGIN).i32_sub().memory_fill(0);
    honest_pre(code);
}

fn search(code: &mut InstructionSink<'_>) {
    code.i32_const(PAGES).memory_grow(0).drop();
    code.i32_const(0).local_set(PRE_LOCAL);
    code.loop_(BlockType::Empty).local_get(PRE_LOCAL).i32_load(ANY);
    code.i32_const(i32::from_le_bytes([MARK as u8; 4]))
        .i32_eq()
        .if_(BlockType::Empty)
        .unreachable()
        .end();
    code.local_get(PRE_LOCAL).i32_const(4).i32_add().local_tee(PRE_LOCAL);
    end(code);
    code.i32_lt_u().br_if(0).end();
    honest_pre(code);
}

#[test]
fn no_memory_of_another_call_is_found() {
    run((0..ROUNDS).flat_map(|_| {
        [case("mark", Guest::pre(mark), HARMLESS), case("search", Guest::pre(search), HARMLESS)]
    }));
}
