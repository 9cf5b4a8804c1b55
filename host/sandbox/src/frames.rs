//! The functions and lines in which a guest of a shared runtime was, read from its memory after its
//! code was stopped. `python` and `javascript` know where the interpreters keep what.
//!
//! The memory is the guest's, which may have written anything: each read is checked, and each loop
//! ends. In the worst case it takes some ten milliseconds, so no serving thread reads frames.

mod javascript;
mod memory;
mod python;

/// The state of CPython is static data, which begins the memory, and is the larger part of it.
const PYTHON_WITHIN: usize = 8 << 20;

/// The table of a plugin in JavaScript stands behind the engine, which takes 11 MB. To look through
/// this much takes some milliseconds, once for each plugin that was stopped.
const JAVASCRIPT_WITHIN: usize = 64 << 20;

/// The functions that are named.
pub(crate) const FUNCTIONS_MAX: usize = 5;

/// An interpreter, and where in its memory the part is that tells of its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interpreter {
    Python(usize),
    JavaScript(usize),
}

impl Interpreter {
    /// The interpreter of which `content` is the memory from the address `begin` on.
    pub(crate) fn of(content: &[u8], begin: usize) -> Option<Self> {
        let within = |bytes: usize| &content[..content.len().min(bytes)];
        if let Some(at) = python::state_in(within(PYTHON_WITHIN)) {
            return Some(Self::Python(begin + at));
        }
        let table = javascript::table_in(within(JAVASCRIPT_WITHIN));
        table.map(|at| Self::JavaScript(begin + at))
    }

    /// The first functions, the innermost one first: `name (file:line)`, and `?` for what cannot be
    /// read. The same lines of a recursion stand there once. Empty if there are none.
    pub(crate) fn functions(self, memory: &[u8]) -> Vec<String> {
        let mut functions = match self {
            Self::Python(state) => python::functions(memory, state),
            Self::JavaScript(table) => javascript::functions(memory, table),
        };
        functions.dedup();
        functions.truncate(FUNCTIONS_MAX);
        functions
    }
}
