//! The languages that have a runtime.

use serde::{Deserialize, Serialize};

/// A language that has a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// CPython.
    Python,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Python];

    /// Its name, as in an archive's manifest and in the name of a runtime's file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
        }
    }
}
