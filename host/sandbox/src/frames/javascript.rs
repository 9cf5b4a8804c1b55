//! SpiderMonkey tells nobody where its structures keep what. The places here are those of the build
//! in componentize-js 0.23, which `sdk/js/build/package.json` pins; they were found in the sources
//! of `js/src/vm` (`Activation.h`, `Stack.h`, `JSScript.h`, `SharedStencil.h`) and in a memory.
//!
//! The engine knows lines of the bundle only. The runtime leaves a table of the author's places in
//! the memory (`sdk/js/runtime/places.js`).

use memchr::memmem;

use super::memory::{FRAMES_MAX, Memory, NAME_MAX, TEXTS_MAX};

/// What stands before the table.
const HEAD: &[u8] = b"gristmill.places";

/// The lines of a bundle, and the bytes of the names of its files.
const LINES_MAX: usize = 4 << 20;
const NAMES_MAX: usize = 1 << 20;

/// The bytes of a file's name that are read: a character has at most four.
const NAME_BYTES_MAX: usize = 4 * NAME_MAX;

/// The bytes of an entry of the table: where the name of a file begins, and a line.
const ENTRY_BYTES: usize = 8;

/// The bytes of a function's notes that are read.
const NOTES_MAX: usize = 64 << 10;

/// The stack of C++, in which the activations are, begins the memory.
const STACK_WITHIN: usize = 2 << 20;

// Where the fields of the engine's structures are, in bytes.

mod context {
    pub(super) const ACTIVATION: usize = 132;
}

/// A call of JavaScript by the engine's own code.
mod activation {
    pub(super) const CONTEXT: usize = 0;
    pub(super) const PREVIOUS: usize = 8;
    pub(super) const INSTRUCTION: usize = 64;
    pub(super) const FRAME: usize = 68;
}

mod frame {
    pub(super) const SCRIPT: usize = 8;
    pub(super) const PREVIOUS: usize = 28;
    pub(super) const PREVIOUS_INSTRUCTION: usize = 32;
}

mod script {
    pub(super) const FUNCTION: usize = 8;
    pub(super) const SOURCE: usize = 12;
    pub(super) const FIRST_LINE: usize = 32;
    pub(super) const SHARED: usize = 52;
}

mod shared {
    pub(super) const DATA: usize = 8;
}

/// The code stands in it, and then the notes of its lines.
mod data {
    pub(super) const NOTES_END: usize = 0;
    pub(super) const CODE_BYTES: usize = 4;
    pub(super) const CODE: usize = 33;
}

mod function {
    pub(super) const NAME: usize = 40;
    pub(super) const NAME_TAG: usize = 44;
}

mod source {
    pub(super) const INNER: usize = 24;
    pub(super) const URL: usize = 72;
}

mod string {
    pub(super) const FLAGS: usize = 0;
    pub(super) const LENGTH: usize = 4;
    pub(super) const TEXT: usize = 8;
}

/// The tag of a value that is a string.
const STRING: usize = 0xffff_ff86;

/// Flags of a string: its text stands in it, and in one byte for each character.
const INLINE: usize = 0x40;
const LATIN1: usize = 0x400;

/// Where the table stands in a memory that begins with this content.
pub(super) fn table_in(content: &[u8]) -> Option<usize> {
    let heads = memmem::find_iter(content, HEAD).take(TEXTS_MAX);
    heads.map(|at| at + HEAD.len()).find(|at| Table::at(Memory(content), *at).is_some())
}

/// The author's functions, the innermost one first.
pub(super) fn functions(memory: &[u8], table: usize) -> Vec<String> {
    let memory = Memory(memory);
    let Some(table) = Table::at(memory, table) else { return Vec::new() };
    let reader = Reader { memory, table };
    reader.frames().filter_map(|(frame, at)| reader.function(frame, at)).collect()
}

/// The author's places of the bundle's lines. Behind two lengths stand the entries, and behind them
/// the names of the bundle and of the files, a line for each.
struct Table<'a> {
    memory: Memory<'a>,
    entries: usize,
    lines: usize,
    names: &'a [u8],
}

impl<'a> Table<'a> {
    fn at(memory: Memory<'a>, at: usize) -> Option<Self> {
        let lines = memory.number(at).filter(|lines| *lines <= LINES_MAX)?;
        let names = memory.field(at, 4).filter(|names| (1..=NAMES_MAX).contains(names))?;
        let entries = at + 8;
        let names = memory.bytes(entries + lines * ENTRY_BYTES, names)?;
        Some(Self { memory, entries, lines, names })
    }

    /// The name that begins at this byte of the names. That of the bundle is the first one.
    fn name(&self, at: usize) -> Option<&'a [u8]> {
        let names = self.names.get(at..)?;
        names[..names.len().min(NAME_BYTES_MAX)].split(|byte| *byte == b'\n').next()
    }

    /// The author's file and line of a line of the bundle. None if it is of no file.
    fn place(&self, line: usize) -> Option<String> {
        let index = line.checked_sub(1).filter(|index| *index < self.lines)?;
        let entry = self.entries + index * ENTRY_BYTES;
        let file = self.memory.number(entry).filter(|file| *file > 0)?;
        let name = self.name(file).filter(|name| !name.starts_with(b"<"))?;
        let name: String = String::from_utf8_lossy(name)
            .chars()
            .filter(|letter| !letter.is_control())
            .take(NAME_MAX)
            .collect();
        Some(format!("{name}:{}", self.memory.field(entry, 4)?))
    }
}

struct Reader<'a> {
    memory: Memory<'a>,
    table: Table<'a>,
}

impl Reader<'_> {
    /// The frames from the innermost one on, each with its instruction.
    fn frames(&self) -> impl Iterator<Item = (usize, usize)> {
        let memory = self.memory;
        let pointer = move |at, offset| memory.field(at, offset).filter(|to| *to != 0);
        let inner = move |activation: usize| {
            let frame = pointer(activation, activation::FRAME)?;
            Some((activation, frame, pointer(activation, activation::INSTRUCTION)?))
        };
        let first = self.innermost().and_then(inner);
        let next = move |(activation, frame, _): &(usize, usize, usize)| {
            let caller = pointer(*frame, frame::PREVIOUS).and_then(|caller| {
                Some((*activation, caller, pointer(*frame, frame::PREVIOUS_INSTRUCTION)?))
            });
            caller.or_else(|| inner(pointer(*activation, activation::PREVIOUS)?))
        };
        let frames = std::iter::successors(first, next).take(FRAMES_MAX);
        frames.map(|(_, frame, instruction)| (frame, instruction))
    }

    /// The innermost activation, which its context points to.
    fn innermost(&self) -> Option<usize> {
        let is_current = |at: &usize| {
            let context = self.memory.field(*at, activation::CONTEXT).filter(|to| *to != 0);
            context.and_then(|to| self.memory.field(to, context::ACTIVATION)) == Some(*at)
        };
        // At the address 0, any 0 would look like the way back to it.
        (4..self.memory.0.len().min(STACK_WITHIN)).step_by(4).find(is_current)
    }

    /// The author's function of a frame. None if it is the engine's or the SDK's.
    fn function(&self, frame: usize, instruction: usize) -> Option<String> {
        let script = self.memory.field(frame, frame::SCRIPT)?;
        if !self.is_of_bundle(script) {
            return None;
        }
        let name = self.name(script).unwrap_or_else(|| "?".to_owned());
        Some(format!("{name} ({})", self.table.place(self.line(script, instruction)?)?))
    }

    fn is_of_bundle(&self, script: usize) -> bool {
        let source = self.memory.field(script, script::SOURCE);
        let inner = source.and_then(|source| self.memory.field(source, source::INNER));
        let url = inner.and_then(|inner| self.memory.field(inner, source::URL));
        let text = url.and_then(|url| self.memory.number(url));
        let (Some(text), Some(bundle)) = (text, self.table.name(0)) else { return false };
        // The text ends with a 0.
        let text = self.memory.bytes(text, 2 * bundle.len() + 2).unwrap_or_default();
        let expected = bundle.iter().chain(&[0]).flat_map(|byte| [*byte, 0]);
        expected.eq(text.iter().copied())
    }

    /// The name of a function, as the engine shows it.
    fn name(&self, script: usize) -> Option<String> {
        let function = self.memory.field(script, script::FUNCTION)?;
        self.memory.field(function, function::NAME_TAG).filter(|tag| *tag == STRING)?;
        let name = self.memory.field(function, function::NAME)?;
        let flags = self.memory.field(name, string::FLAGS)?;
        let length = self.memory.field(name, string::LENGTH)?.min(NAME_MAX);
        let text = match flags & INLINE {
            0 => self.memory.field(name, string::TEXT)?,
            _ => name.checked_add(string::TEXT)?,
        };
        let name = self.memory.text(text, length, if flags & LATIN1 == 0 { 2 } else { 1 });
        name.filter(|name| !name.is_empty())
    }

    /// The bundle's line of an instruction.
    fn line(&self, script: usize, instruction: usize) -> Option<usize> {
        let shared = self.memory.field(script, script::SHARED)?;
        let data = self.memory.field(shared, shared::DATA)?;
        let code = data.checked_add(data::CODE)?;
        let notes = code.checked_add(self.memory.field(data, data::CODE_BYTES)?)?;
        let end = data.checked_add(self.memory.field(data, data::NOTES_END)?)?;
        let notes = self.memory.bytes(notes, end.checked_sub(notes)?.min(NOTES_MAX))?;
        let first_line = self.memory.field(script, script::FIRST_LINE)?;
        line_of(notes, first_line, instruction.checked_sub(code)?)
    }
}

/// The line of the instruction at `offset` of a function's code, by its notes (`SourceNotes.h`).
fn line_of(notes: &[u8], first_line: usize, offset: usize) -> Option<usize> {
    let (mut bytes, mut line, mut at) = (notes.iter().copied(), first_line, 0_usize);
    while let Some(note) = bytes.next() {
        let is_long = note & 0x80 != 0;
        at += usize::from(note & if is_long { 0x7f } else { 0xf });
        if note == END || at > offset {
            break;
        }
        // A long one only goes on in the code.
        match note >> 4 {
            1 => line += 1,
            2 => {
                line += 1;
                number_of(&mut bytes)?;
            }
            3 => line = first_line.checked_add(number_of(&mut bytes)?)?,
            4 => {
                line = first_line.checked_add(number_of(&mut bytes)?)?;
                number_of(&mut bytes)?;
            }
            0 => drop(number_of(&mut bytes)?),
            _ => {}
        }
    }
    Some(line)
}

/// The note after the last one.
const END: u8 = 0x80;

/// A number in one byte, or in four with the highest first.
fn number_of(bytes: &mut impl Iterator<Item = u8>) -> Option<usize> {
    let first = usize::from(bytes.next()?);
    if first & 0x80 == 0 {
        return Some(first);
    }
    (0..3).try_fold(first & 0x7f, |number, _| Some(number << 8 | usize::from(bytes.next()?)))
}

#[cfg(test)]
mod tests;
