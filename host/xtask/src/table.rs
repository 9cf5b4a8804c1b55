//! Tables on the terminal, and results of measurements: such a table, and JSON under
//! benches/results/.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde_json::{Value, json};

use crate::shell::{output, program, root};

/// The results of a measurement.
pub(crate) struct Table {
    name: &'static str,
    /// The command that measures.
    pub(crate) command: String,
    /// The cores of the machine that was measured, if it is not this one.
    pub(crate) cores: Option<u64>,
    /// Whether it is written to benches/results/.
    pub(crate) is_recorded: bool,
    rows: Vec<Row>,
}

pub(crate) struct Row {
    what: String,
    figures: Value,
    /// The figures in words.
    words: String,
    /// A target in words, and whether it is reached.
    target: Option<(String, bool)>,
}

/// A target for one figure.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Table {
    /// An empty table of the figures of `command`, to be written to `name`.json.
    pub(crate) fn new(name: &'static str, command: String) -> Self {
        Self { name, command, cores: None, is_recorded: true, rows: Vec::new() }
    }

    /// Add a row. It shows the figures that are numbers, texts or lists of them.
    pub(crate) fn row(&mut self, what: impl Into<String>, figures: Value) -> &mut Row {
        let (at, words) = (self.rows.len(), words(&figures));
        self.rows.push(Row { what: what.into(), figures, words, target: None });
        &mut self.rows[at]
    }

    /// Print the table, and write it to benches/results/ if it is recorded. A table without rows is
    /// not written.
    pub(crate) fn finish(self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        println!();
        let cells = self.rows.iter().map(|row| [row.what.clone(), row.line()]);
        print_aligned(&cells.collect::<Vec<_>>());
        if !self.is_recorded {
            return Ok(());
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
            json!({
                "what": row.what,
                "figures": row.figures,
                "to_reach": row.target.as_ref().map(|(target, _)| target),
                "verdict": row.verdict(),
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

impl Row {
    /// Show these words in place of the figures.
    pub(crate) fn shown(&mut self, words: impl Into<String>) -> &mut Self {
        self.words = words.into();
        self
    }

    /// Give it a target.
    pub(crate) fn with_target(&mut self, target: impl Into<String>, is_reached: bool) {
        self.target = Some((target.into(), is_reached));
    }

    /// Give it the target that `value` keeps `bound`, which is in `unit`.
    pub(crate) fn with_bound(&mut self, value: f64, bound: Bound, unit: &str) {
        let (words, is_reached) = match bound {
            Bound::AtLeast(least) => (format!("at least {least} {unit}"), value >= least),
            Bound::AtMost(most) => (format!("at most {most} {unit}"), value <= most),
        };
        self.with_target(words.trim_end(), is_reached);
    }

    fn verdict(&self) -> Option<&'static str> {
        self.target.as_ref().map(|(_, is_reached)| if *is_reached { "reached" } else { "missed" })
    }

    fn line(&self) -> String {
        match self.target.as_ref().zip(self.verdict()) {
            Some(((target, _), verdict)) => format!("{}  to reach {target}: {verdict}", self.words),
            None => self.words.clone(),
        }
    }
}

/// The names of figures with their values. A list of numbers is its range.
fn words(figures: &Value) -> String {
    let words_of = |name: &String, figure: &Value| {
        let text = match figure {
            Value::Array(list) if list.iter().all(Value::is_number) => {
                let mut numbers: Vec<f64> = list.iter().filter_map(Value::as_f64).collect();
                numbers.sort_by(f64::total_cmp);
                format!("{} to {}", rounded(*numbers.first()?), rounded(*numbers.last()?))
            }
            Value::Array(list) => {
                list.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?.join(" and ")
            }
            Value::String(text) if name != "what" => text.clone(),
            figure => rounded(figure.as_f64()?),
        };
        Some(format!("{name} {text}"))
    };
    let all = figures.as_object().into_iter().flatten();
    all.filter_map(|(name, figure)| words_of(name, figure)).collect::<Vec<_>>().join(", ")
}

fn rounded(number: f64) -> String {
    let digits = match number.abs() {
        _ if number.fract() == 0.0 => 0,
        100.0.. => 0,
        10.0.. => 1,
        _ => 3,
    };
    format!("{number:.digits$}")
}

/// Print lines whose columns are aligned.
pub(crate) fn print_aligned<const N: usize>(lines: &[[String; N]]) {
    let length = |cell: &String| cell.chars().count();
    let width = |at: usize| lines.iter().map(|line| length(&line[at])).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    for line in lines {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::words;

    #[test]
    fn figures_are_shown_with_their_names() {
        let figures = json!({
            "what": "a", "ratio": 0.98765, "ratios": [1.2, 0.9], "per_s": 12345.6, "failed": 0,
            "others": { "504": 3 }, "p99_ms": null, "missed": ["p99", "alive"], "none": [],
        });
        let expected =
            "failed 0, missed p99 and alive, per_s 12346, ratio 0.988, ratios 0.900 to 1.200";
        assert_eq!(words(&figures), expected);
    }
}
