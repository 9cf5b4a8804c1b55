#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::*;

/// Where the parts of the memory are.
const STATE: usize = 0x100;
const THREAD: usize = 0x500;
const FRAME: usize = 0x600;
const CODE: usize = 0x700;
const NAME: usize = 0x800;
const LINES: usize = 0x900;

/// A memory in which CPython is in one function, `call`, at the second entry of its table of lines.
fn memory() -> Vec<u8> {
    let mut memory = vec![0; 0x1000];
    memory[STATE..STATE + 8].copy_from_slice(COOKIE);
    word(&mut memory, entry::VERSION, 0x030e_00f0);
    // Each field of a structure has a place of its own.
    for (at, entry) in [
        entry::CURRENT_FRAME,
        entry::PREVIOUS,
        entry::EXECUTABLE,
        entry::INSTRUCTION,
        entry::OWNER,
        entry::FILE,
        entry::NAME,
        entry::LINES,
        entry::FIRST_LINE,
        entry::BYTES_SIZE,
        entry::TEXT_STATE,
        entry::TEXT_LENGTH,
    ]
    .into_iter()
    .enumerate()
    {
        word(&mut memory, entry, 4 * at as u64);
    }
    word(&mut memory, entry::INTERPRETERS, 0x300);
    for entry in [entry::CODE, entry::BYTES, entry::TEXT] {
        word(&mut memory, entry, 0x40);
    }
    let mut set = |at: usize, entry: usize, value: usize| {
        let at = at + Reader { memory: Memory(&memory.clone()), state: 0 }.at(entry);
        memory[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
    };
    set(STATE, entry::INTERPRETERS, 0x480);
    set(0x480, entry::THREADS, THREAD);
    set(THREAD, entry::CURRENT_FRAME, FRAME);
    set(FRAME, entry::EXECUTABLE, CODE | 1);
    set(FRAME, entry::INSTRUCTION, CODE + 0x40 + 2 * 3);
    set(CODE, entry::NAME, NAME);
    set(CODE, entry::FILE, NAME);
    set(CODE, entry::LINES, LINES);
    set(CODE, entry::FIRST_LINE, 10);
    set(LINES, entry::BYTES_SIZE, 5);
    set(NAME, entry::TEXT_STATE, 1 << 2 | 1 << 5 | 1 << 6);
    set(NAME, entry::TEXT_LENGTH, 4);
    memory[NAME + 0x40..NAME + 0x44].copy_from_slice(b"call");
    // Three units of line 11, then one of line 9.
    memory[LINES + 0x40..LINES + 0x45].copy_from_slice(&[
        0x80 | 11 << 3 | 2,
        0,
        0,
        0x80 | 13 << 3,
        5,
    ]);
    memory
}

fn word(memory: &mut [u8], entry: usize, value: u64) {
    let at = STATE + entry * 8;
    memory[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

impl Reader<'_> {
    fn at(&self, entry: usize) -> usize {
        self.memory.word(STATE + entry * 8).unwrap() as usize
    }
}

#[test]
fn the_function_and_its_line_are_found() {
    let memory = memory();
    assert_eq!(state_in(&memory), Some(STATE));
    assert_eq!(functions(&memory, STATE), ["call (call:9)"]);
}

#[test]
fn another_version_is_not_read() {
    let mut memory = memory();
    word(&mut memory, entry::VERSION, 0x030f_00f0);
    assert_eq!(state_in(&memory), None);
}

#[test]
fn any_memory_ends_in_some_list() {
    let good = memory();
    // Frames in a circle.
    let mut circle = good.clone();
    let previous = FRAME + 4;
    circle[previous..previous + 4].copy_from_slice(&(FRAME as u32).to_le_bytes());
    assert_eq!(functions(&circle, STATE).len(), FRAMES_MAX);
    // Each word of the memory as a number that leads nowhere.
    for at in (STATE..good.len() - 8).step_by(4) {
        for value in [u64::MAX, 1 << 31, good.len() as u64 - 1] {
            let mut bad = good.clone();
            bad[at..at + 8].copy_from_slice(&value.to_le_bytes());
            assert!(functions(&bad, STATE).len() <= FRAMES_MAX);
        }
    }
    for length in 0..good.len() {
        functions(&good[..length], STATE);
        functions(&good, length);
    }
}

#[test]
fn lines_are_those_of_cpythons_table() {
    // `def f():` at line 1; line 2 in the long form, then a step back, then none.
    let table =
        [0x80, 0, 0x80 | 14 << 3 | 1, 2, 0, 1, 70, 1, 0x80 | 13 << 3, 3, 0x80 | 15 << 3 | 7];
    let lines: Vec<_> = (0..13).map(|unit| line_of(&table, 1, unit)).collect();
    assert_eq!(lines[..4], [Some(1), Some(2), Some(2), Some(1)]);
    assert!(lines[4..].iter().all(Option::is_none), "{lines:?}");
    // A number without end.
    assert_eq!(line_of(&[0x80 | 13 << 3, 64, 64, 64, 64, 64, 64, 64], 1, 0), None);
}
