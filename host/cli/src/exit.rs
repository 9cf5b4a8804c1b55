//! The exit codes of the program.
//!
//! | code | |
//! |---|---|
//! | 0 | the command did what it says |
//! | 1 | something was refused or failed; standard error says why |
//! | 2 | `diff` and `deploy --dry-run`: something differs; all: the command line is wrong |

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what it says.
    Done,
    /// A comparison found differences.
    Differs,
}

/// A command failed.
pub const FAILED: i32 = 1;

impl Exit {
    /// The code of the process.
    pub fn code(self) -> i32 {
        match self {
            Self::Done => 0,
            Self::Differs => 2,
        }
    }
}
