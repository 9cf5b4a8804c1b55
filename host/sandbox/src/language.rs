//! The languages that have a runtime.

use serde::{Deserialize, Serialize};

/// A language that has a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// CPython.
    Python,
    /// StarlingMonkey. TypeScript is JavaScript once its types are removed.
    JavaScript,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Python, Self::JavaScript];

    /// Its name, as in an archive's manifest and in the name of a runtime's file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
        }
    }

    /// The names that its runtime's file can have: as it was built, and as a package compresses it.
    pub fn runtime_files(self) -> [String; 2] {
        ["wasm", "wasm.zst"].map(|extension| format!("{}.{extension}", self.name()))
    }
}
