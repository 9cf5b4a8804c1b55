//! Results: a table on the terminal and JSON under benches/results/.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde_json::{Value, json};

use crate::shell::{output, program, root};

/// A benchmark's results.
pub(crate) struct Table {
    name: &'static str,
    command: String,
    /// The cores of the machine that was measured, if it is not this one.
    pub(crate) cores: Option<u64>,
    rows: Vec<Row>,
}

struct Row {
    what: String,
    measured: String,
    figures: Value,
    /// None for a row without a target.
    verdict: Option<Verdict>,
}

/// A target, and whether it was reached.
pub(crate) struct Verdict {
    /// The target in words.
    pub(crate) target: String,
    pub(crate) is_reached: bool,
}

impl Verdict {
    pub(crate) fn new(target: impl Into<String>, is_reached: bool) -> Self {
        Self { target: target.into(), is_reached }
    }

    fn word(&self) -> &'static str {
        if self.is_reached { "reached" } else { "missed" }
    }
}

impl Table {
    /// An empty table of the figures of `command`, to be written to `name`.json.
    pub(crate) fn new(name: &'static str, command: &str) -> Self {
        Self { name, command: command.into(), cores: None, rows: Vec::new() }
    }

    /// Add a row without a target.
    pub(crate) fn row(&mut self, what: impl Into<String>, measured: String, figures: Value) {
        self.rows.push(Row { what: what.into(), measured, figures, verdict: None });
    }

    /// Add a row with a target.
    pub(crate) fn row_to_reach(
        &mut self,
        what: impl Into<String>,
        measured: String,
        figures: Value,
        verdict: Verdict,
    ) {
        self.rows.push(Row { what: what.into(), measured, figures, verdict: Some(verdict) });
    }

    /// Print it and write it to benches/results/.
    pub(crate) fn finish(self) -> Result<()> {
        let width = self.rows.iter().map(|row| row.what.len()).max().unwrap_or(0);
        println!();
        for row in &self.rows {
            let verdict = row.verdict.as_ref().map_or_else(String::new, |verdict| {
                format!("  to reach {}: {}", verdict.target, verdict.word())
            });
            println!("{:width$}  {}{verdict}", row.what, row.measured);
        }
        let directory = root().join("benches/results");
        std::fs::create_dir_all(&directory)?;
        let path = directory.join(format!("{}.json", self.name));
        std::fs::write(&path, serde_json::to_string_pretty(&self.document()?)? + "\n")?;
        println!("\nwritten to benches/results/{}.json", self.name);
        Ok(())
    }

    fn document(&self) -> Result<Value> {
        let rows = self.rows.iter().map(|row| {
            let verdict = row.verdict.as_ref();
            json!({
                "what": row.what,
                "figures": row.figures,
                "to_reach": verdict.map(|verdict| &verdict.target),
                "verdict": verdict.map(Verdict::word),
            })
        });
        let commit =
            output(program("git").args(["rev-parse", "--short", "HEAD"])).unwrap_or_default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        Ok(json!({
            "benchmark": self.name,
            "command": self.command,
            "commit": commit.trim(),
            "measured_at_unix_s": now.as_secs(),
            "cores": self.cores.unwrap_or(std::thread::available_parallelism()?.get() as u64),
            "rows": rows.collect::<Vec<_>>(),
        }))
    }
}
