#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::*;
use crate::frames::Interpreter;

/// Where the parts of the memory are. Each function has a frame and a script.
const ACTIVATION: usize = 0x100;
const CONTEXT: usize = 0x200;
const FRAMES: [usize; 2] = [0x300, 0x340];
const SCRIPTS: [usize; 2] = [0x400, 0x440];
const SOURCE: usize = 0x500;
const INNER: usize = 0x540;
const URL: usize = 0x600;
const FUNCTION: usize = 0x640;
const NAME: usize = 0x680;
const SHARED: usize = 0x700;
const DATA: usize = 0x740;
const TABLE: usize = 0x800;

/// Code of four bytes, and notes by which the third is of line 2, and the last one of line 3.
const CODE_BYTES: usize = 4;
const NOTES: [u8; 3] = [0x12, 0x11, 0x80];

/// A memory in which a function, `call`, is at line 3 of the bundle, and the function that called
/// it is the runtime's.
fn memory() -> Vec<u8> {
    let mut memory = vec![0; 0x1000];
    let mut set = |at: usize, value: usize| {
        memory[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
    };
    set(ACTIVATION + activation::CONTEXT, CONTEXT);
    set(ACTIVATION + activation::FRAME, FRAMES[0]);
    set(ACTIVATION + activation::INSTRUCTION, DATA + data::CODE + 3);
    set(CONTEXT + context::ACTIVATION, ACTIVATION);
    set(FRAMES[0] + frame::SCRIPT, SCRIPTS[0]);
    set(FRAMES[0] + frame::PREVIOUS, FRAMES[1]);
    set(FRAMES[0] + frame::PREVIOUS_INSTRUCTION, DATA + data::CODE);
    set(FRAMES[1] + frame::SCRIPT, SCRIPTS[1]);
    set(SCRIPTS[0] + script::FUNCTION, FUNCTION);
    set(SCRIPTS[0] + script::SOURCE, SOURCE);
    set(SCRIPTS[0] + script::FIRST_LINE, 1);
    set(SCRIPTS[0] + script::SHARED, SHARED);
    set(SOURCE + source::INNER, INNER);
    set(INNER + source::URL, URL);
    set(URL, URL + 8);
    set(FUNCTION + function::NAME, NAME);
    set(FUNCTION + function::NAME_TAG, STRING);
    set(NAME + string::FLAGS, INLINE | LATIN1);
    set(NAME + string::LENGTH, 4);
    set(SHARED + shared::DATA, DATA);
    set(DATA + data::CODE_BYTES, CODE_BYTES);
    set(DATA + data::NOTES_END, data::CODE + CODE_BYTES + NOTES.len());
    let names = b"b.js\nplugin.js";
    let plugin = 5;
    let lines = [(plugin, 7), (0, 0), (plugin, 9)];
    set(TABLE, lines.len());
    set(TABLE + 4, names.len());
    for (index, (file, line)) in lines.into_iter().enumerate() {
        set(TABLE + 8 + index * ENTRY_BYTES, file);
        set(TABLE + 12 + index * ENTRY_BYTES, line);
    }
    for (at, bytes) in [
        (URL + 8, &b"b\0.\0j\0s\0\0\0"[..]),
        (NAME + string::TEXT, b"call"),
        (DATA + data::CODE + CODE_BYTES, &NOTES),
        (TABLE - HEAD.len(), HEAD),
        (TABLE + 8 + lines.len() * ENTRY_BYTES, names),
    ] {
        memory[at..at + bytes.len()].copy_from_slice(bytes);
    }
    memory
}

#[test]
fn the_authors_function_and_line_are_found() {
    let memory = memory();
    assert_eq!(table_in(&memory), Some(TABLE));
    assert_eq!(functions(&memory, TABLE), ["call (plugin.js:9)"]);
}

#[test]
fn code_of_no_file_is_left_out() {
    let mut memory = memory();
    memory[ACTIVATION + activation::INSTRUCTION] -= 1;
    // Line 2 of the bundle.
    assert!(functions(&memory, TABLE).is_empty());
}

#[test]
fn a_name_is_cut_and_one_beyond_the_names_has_no_place() {
    let letters = "ä".repeat(4 * NAME_MAX);
    let names = [&b"b.js\n"[..], letters.as_bytes()].concat();
    let mut memory = vec![1, 0, 0, 0];
    for number in [names.len() as u32, 5, 7] {
        memory.extend(number.to_le_bytes());
    }
    memory.extend(names);
    let place = |memory: &[u8]| Table::at(Memory(memory), 0).unwrap().place(1);
    assert_eq!(place(&memory), Some(format!("{}:7", "ä".repeat(NAME_MAX))));
    memory[8..12].fill(0xff);
    assert_eq!(place(&memory), None);
}

#[test]
fn a_head_without_a_table_is_passed_over() {
    let mut memory = memory();
    memory[0x900..0x900 + HEAD.len()].copy_from_slice(HEAD);
    memory[0x20..0x20 + HEAD.len()].copy_from_slice(HEAD);
    assert_eq!(table_in(&memory), Some(TABLE));
    memory[TABLE + 3] = 0xff;
    assert_eq!(table_in(&memory), None);
}

#[test]
fn any_memory_ends_in_some_list() {
    let good = memory();
    // Frames, and activations, in a circle.
    let mut circle = good.clone();
    let previous = FRAMES[0] + frame::PREVIOUS;
    circle[previous..previous + 4].copy_from_slice(&(FRAMES[0] as u32).to_le_bytes());
    assert_eq!(functions(&circle, TABLE).len(), FRAMES_MAX);
    // The same lines stand there once.
    let named = Interpreter::JavaScript(TABLE).functions(&circle);
    assert_eq!(named, ["call (plugin.js:9)", "call (plugin.js:7)"]);
    let mut circle = good.clone();
    let previous = ACTIVATION + activation::PREVIOUS;
    circle[previous..previous + 4].copy_from_slice(&(ACTIVATION as u32).to_le_bytes());
    assert_eq!(functions(&circle, TABLE).len(), FRAMES_MAX / 2);
    // Each word of the memory as a number that leads nowhere.
    for at in (0..good.len() - 4).step_by(4) {
        for value in [u32::MAX, 1 << 31, good.len() as u32 - 1] {
            let mut bad = good.clone();
            bad[at..at + 4].copy_from_slice(&value.to_le_bytes());
            assert!(functions(&bad, TABLE).len() <= FRAMES_MAX);
        }
    }
    for length in 0..good.len() {
        functions(&good[..length], TABLE);
        functions(&good, length);
    }
}

#[test]
fn lines_are_those_of_the_engines_notes() {
    // Ten bytes on, the next line; a column; after 128 bytes more, line 5 + 2; at once, line
    // 5 + 300 with a column; then the end.
    let notes = [
        0x1a, 0x00, 0x83, 0x00, 0x00, 0x01, 0xff, 0x31, 0x02, 0x40, 0x80, 0x00, 0x01, 0x2c, 0x07,
        0x80, 0x11,
    ];
    let line = |offset| line_of(&notes, 5, offset);
    assert_eq!([line(0), line(9), line(10), line(137)], [Some(5), Some(5), Some(6), Some(6)]);
    assert_eq!([line(138), line(1 << 20)], [Some(305), Some(305)]);
    // A number without an end.
    assert_eq!(line_of(&[0x30, 0x80], 1, 0), None);
}
