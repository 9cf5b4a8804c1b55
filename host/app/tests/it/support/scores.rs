//! The scores of suites that other projects made, for the table of `cargo xtask nightly`.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;

use serde_json::json;

/// Names the file to which scores are added, a JSON object a line. Set by `cargo xtask nightly`.
const VARIABLE: &str = "GRISTMILL_TEST_SCORES";

/// The outcome of a topic of a suite.
pub(crate) struct Score<'a> {
    pub(crate) suite: &'a str,
    pub(crate) topic: &'a str,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

/// Note a score, if scores are asked for.
pub(crate) fn note(score: &Score<'_>) {
    let Some(path) = env::var_os(VARIABLE) else { return };
    let Score { suite, topic, passed, failed } = *score;
    let line = json!({
        "suite": suite, "topic": topic, "passed": passed, "failed": failed, "not_applicable": 0,
    });
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}
