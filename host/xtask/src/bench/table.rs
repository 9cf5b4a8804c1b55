//! Results: a table on the terminal and JSON under benches/results/.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde_json::{Value, json};

use crate::shell::{output, program, root};

/// A benchmark's results.
pub(crate) struct Table {
    name: &'static str,
    command: String,
    rows: Vec<Row>,
}

struct Row {
    what: String,
    measured: String,
    figures: Value,
    /// The target, and whether it was reached.
    target: Option<(String, bool)>,
}

impl Table {
    /// An empty one, to be written to `name`.json, for what `command` measures.
    pub(crate) fn new(name: &'static str, command: &str) -> Self {
        Self { name, command: command.into(), rows: Vec::new() }
    }

    /// A row without a figure to reach.
    pub(crate) fn row(&mut self, what: impl Into<String>, measured: String, figures: Value) {
        self.rows.push(Row { what: what.into(), measured, figures, target: None });
    }

    /// A row with one.
    pub(crate) fn row_to_reach(
        &mut self,
        what: impl Into<String>,
        measured: String,
        figures: Value,
        target: (&str, bool),
    ) {
        let target = Some((target.0.to_owned(), target.1));
        self.rows.push(Row { what: what.into(), measured, figures, target });
    }

    /// Print it and write it to benches/results/.
    pub(crate) fn finish(self) -> Result<()> {
        let width = self.rows.iter().map(|row| row.what.len()).max().unwrap_or(0);
        println!();
        for row in &self.rows {
            let verdict = match &row.target {
                Some((target, true)) => format!("  to reach {target}: reached"),
                Some((target, false)) => format!("  to reach {target}: missed"),
                None => String::new(),
            };
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
            let verdict =
                row.target.as_ref().map(|(_, reached)| if *reached { "reached" } else { "missed" });
            json!({
                "what": row.what,
                "figures": row.figures,
                "to_reach": row.target.as_ref().map(|(target, _)| target),
                "verdict": verdict,
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
            "cores": std::thread::available_parallelism()?.get(),
            "rows": rows.collect::<Vec<_>>(),
        }))
    }
}
