//! Measurements in a file.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use gristmill_load::Measured;
use serde::{Deserialize, Serialize};

const FORMAT: u32 = 1;

/// Measurements, and of what they are.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Saved {
    format: u32,
    /// The version of the program that measured.
    version: String,
    /// The URL, or the file of the targets.
    pub(super) what: String,
    pub(super) measured: Vec<Measured>,
}

impl Saved {
    pub(super) fn new(what: String, measured: Vec<Measured>) -> Self {
        Self { format: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned(), what, measured }
    }

    pub(super) fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string(self)?)
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    pub(super) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let invalid = || format!("{shown} is not a file of gristmill bench --save");
        let saved: Self = serde_json::from_str(&text).with_context(invalid)?;
        if saved.format != FORMAT {
            bail!("{shown} has the format {}, and this program reads {FORMAT}", saved.format);
        }
        Ok(saved)
    }
}
