//! CPython has a table of where its structures keep what, made for debuggers and profilers that
//! read another process's memory: `_Py_DebugOffsets` of `Include/internal/pycore_debug_offsets.h`,
//! here as it is in 3.14.

use memchr::memmem;

use super::memory::{FRAMES_MAX, Memory, NAME_MAX, TEXTS_MAX};

/// The bytes of a table of lines that are read.
const LINES_MAX: usize = 64 << 10;

/// The first bytes of the table.
const COOKIE: &[u8] = b"xdebugpy";

/// The versions of CPython whose table is known: the first two bytes of its number.
const KNOWN: u64 = 0x030e;

/// From this owner on, a frame is the interpreter's own.
const OWNED_BY_INTERPRETER: u8 = 3;

/// Where the entries of the table are, counted in words of 8 bytes.
mod entry {
    pub(super) const VERSION: usize = 1;
    pub(super) const INTERPRETERS: usize = 5;
    pub(super) const THREADS: usize = 9;
    pub(super) const CURRENT_FRAME: usize = 26;
    pub(super) const PREVIOUS: usize = 32;
    pub(super) const EXECUTABLE: usize = 33;
    pub(super) const INSTRUCTION: usize = 34;
    pub(super) const OWNER: usize = 36;
    pub(super) const FILE: usize = 40;
    pub(super) const NAME: usize = 42;
    pub(super) const LINES: usize = 43;
    pub(super) const FIRST_LINE: usize = 44;
    pub(super) const CODE: usize = 48;
    pub(super) const BYTES_SIZE: usize = 75;
    pub(super) const BYTES: usize = 76;
    pub(super) const TEXT_STATE: usize = 78;
    pub(super) const TEXT_LENGTH: usize = 79;
    pub(super) const TEXT: usize = 80;
}

/// Where CPython's state is in a memory that begins with this content.
pub(super) fn state_in(content: &[u8]) -> Option<usize> {
    memmem::find_iter(content, COOKIE).take(TEXTS_MAX).find(|at| {
        let version = Memory(content).word(at + entry::VERSION * 8);
        version.is_some_and(|version| version >> 16 == KNOWN)
    })
}

/// The functions, the innermost one first: `name (file:line)`, and `?` for one that cannot be read.
/// Empty if there are none.
pub(super) fn functions(memory: &[u8], state: usize) -> Vec<String> {
    let reader = Reader { memory: Memory(memory), state };
    let mut functions = Vec::new();
    let mut frame = reader.innermost();
    for _ in 0..FRAMES_MAX {
        let Some(at) = frame else { break };
        if !reader.is_interpreters(at) {
            functions.push(reader.function(at).unwrap_or_else(|| "?".to_owned()));
        }
        frame = reader.field(at, entry::PREVIOUS).filter(|at| *at != 0);
    }
    functions
}

struct Reader<'a> {
    memory: Memory<'a>,
    state: usize,
}

impl Reader<'_> {
    /// The place of a field of the structure at `at`.
    fn place(&self, at: usize, entry: usize) -> Option<usize> {
        let offset = self.memory.word(self.state.checked_add(entry * 8)?)?;
        at.checked_add(usize::try_from(offset).ok()?)
    }

    fn field(&self, at: usize, entry: usize) -> Option<usize> {
        self.memory.number(self.place(at, entry)?)
    }

    fn innermost(&self) -> Option<usize> {
        let interpreter = self.field(self.state, entry::INTERPRETERS)?;
        let thread = self.field(interpreter, entry::THREADS)?;
        self.field(thread, entry::CURRENT_FRAME).filter(|at| *at != 0)
    }

    /// Whether a frame is the interpreter's own.
    fn is_interpreters(&self, frame: usize) -> bool {
        let owner = self.place(frame, entry::OWNER).and_then(|at| self.memory.byte(at));
        owner.is_some_and(|owner| owner >= OWNED_BY_INTERPRETER)
    }

    /// The function of a frame.
    fn function(&self, frame: usize) -> Option<String> {
        // The lowest bits say how the reference counts.
        let code = self.field(frame, entry::EXECUTABLE)? & !3;
        let name = self.text(self.field(code, entry::NAME)?)?;
        let file = self.text(self.field(code, entry::FILE)?)?;
        let line = self.line(code, self.field(frame, entry::INSTRUCTION)?);
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        Some(format!("{name} ({file}{line})"))
    }

    /// The text of a `str`.
    fn text(&self, at: usize) -> Option<String> {
        let state = self.memory.number(self.place(at, entry::TEXT_STATE)?)?;
        let length = self.field(at, entry::TEXT_LENGTH)?;
        let (kind, is_compact, is_ascii) =
            (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
        // Other texts than those of ASCII keep their form as UTF-8, too: two more words.
        let head = if is_ascii { 0 } else { 8 };
        let start = self.place(at, entry::TEXT)?.checked_add(head)?;
        let is_known = is_compact && [1, 2, 4].contains(&kind);
        is_known.then(|| self.memory.text(start, length.min(NAME_MAX), kind))?
    }

    /// The line of the instruction at `instruction`, by the code's table of lines
    /// (`InternalDocs/code_objects.md`).
    fn line(&self, code: usize, instruction: usize) -> Option<i64> {
        let unit = instruction.checked_sub(self.place(code, entry::CODE)?)? / 2;
        let table = self.field(code, entry::LINES)?;
        let size = self.field(table, entry::BYTES_SIZE)?.min(LINES_MAX);
        let table = self.memory.bytes(self.place(table, entry::BYTES)?, size)?;
        let first_line = i64::try_from(self.field(code, entry::FIRST_LINE)?).ok()?;
        line_of(table, first_line, unit)
    }
}

/// The line of a code unit.
fn line_of(table: &[u8], first_line: i64, unit: usize) -> Option<i64> {
    let (mut bytes, mut line, mut end) = (table.iter().copied(), first_line, 0_usize);
    while let Some(first) = bytes.next() {
        let kind = first >> 3 & 15;
        let mut has_line = true;
        match kind {
            15 => has_line = false,
            // With columns as numbers of several bytes, or without any.
            13 | 14 => {
                let change = number_of(&mut bytes)?;
                let size = i64::try_from(change >> 1).ok()?;
                line = line.checked_add(if change & 1 == 1 { -size } else { size })?;
                if kind == 14 {
                    for _ in 0..3 {
                        number_of(&mut bytes)?;
                    }
                }
            }
            10..=12 => {
                line = line.checked_add(i64::from(kind - 10))?;
                bytes.next()?;
                bytes.next()?;
            }
            _ => drop(bytes.next()?),
        }
        end += usize::from(first & 7) + 1;
        if unit < end {
            return has_line.then_some(line);
        }
    }
    None
}

/// A number in parts of six bits, the lowest first.
fn number_of(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let mut number = 0;
    for shift in (0..36).step_by(6) {
        let byte = bytes.next()?;
        number |= u64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests;
