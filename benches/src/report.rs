//! The rows that the programs of the benchmarks print, a JSON document a line. `cargo xtask bench`
//! shows and records them.

use serde_json::{Value, json};

/// A target for the figures of a row, and whether they reach it.
pub struct Goal {
    words: String,
    is_reached: bool,
}

impl Goal {
    /// A target in words.
    pub fn new(words: impl Into<String>, is_reached: bool) -> Self {
        Self { words: words.into(), is_reached }
    }

    /// `value` is to be at least so many `unit`. A value that is not a number misses it.
    pub fn at_least(value: f64, least: f64, unit: &str) -> Self {
        Self::new(format!("at least {least} {unit}").trim_end(), value >= least)
    }

    /// `value` is to be at most so many `unit`. A value that is not a number misses it.
    pub fn at_most(value: f64, most: f64, unit: &str) -> Self {
        Self::new(format!("at most {most} {unit}").trim_end(), value <= most)
    }
}

/// Print a row: what was measured, its figures, and their target, if there is one.
pub fn row(what: &str, figures: &Value, target: Option<Goal>) {
    let mut row = json!({ "what": what, "figures": figures });
    if let Some(Goal { words, is_reached }) = target {
        row["to_reach"] = words.into();
        row["is_reached"] = is_reached.into();
    }
    println!("{row}");
}
