//! Running a program of tests, and counting its results from what it prints.

use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// The totals of one or more runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) succeeded: bool,
}

/// The program that prints the results.
#[derive(Clone, Copy, Debug)]
pub(super) enum Printer {
    /// `cargo test`: one line for each of its binaries.
    Cargo,
    /// pytest's last line.
    Pytest,
    /// `node --test --test-reporter=spec`: the last lines.
    Node,
    /// The tests in C: each program prints one line when all of its tests have passed.
    C,
}

impl Default for Tally {
    fn default() -> Self {
        Self { passed: 0, failed: 0, succeeded: true }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.succeeded &= other.succeeded;
    }
}

/// Run `command`. Its output is passed on and counted.
///
/// # Errors
/// The program cannot be run.
pub(super) fn run_tests(command: &mut Command, printer: Printer) -> Result<Tally> {
    let cannot_run = format!("cannot run {command:?}");
    let mut child = command.stdout(Stdio::piped()).spawn().context(cannot_run)?;
    let stdout = child.stdout.take().context("no standard output")?;
    let mut tally = Tally::default();
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        let (passed, failed) = printer.counts(&line).unwrap_or_default();
        tally.passed += passed;
        tally.failed += failed;
    }
    tally.succeeded = child.wait()?.success();
    // A program that ended early, or a test in C, did not print what failed.
    tally.failed += u64::from(!tally.succeeded && tally.failed == 0);
    Ok(tally)
}

impl Printer {
    /// The tests that have passed and failed, if this line says so.
    fn counts(self, line: &str) -> Option<(u64, u64)> {
        match self {
            Self::Cargo => {
                let rest = line.strip_prefix("test result: ")?;
                let number = |word: &str| {
                    let part = rest.split([';', '.']).find(|part| part.trim().ends_with(word))?;
                    part.split_whitespace().next()?.parse().ok()
                };
                Some((number(" passed")?, number(" failed")?))
            }
            Self::Pytest => {
                let (counts, _) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
                let number = |word: &str| {
                    let mut parts = counts.split(", ");
                    let part = parts.find_map(|part| part.strip_suffix(word))?;
                    part.trim().parse().ok()
                };
                let (passed, failed) = (number("passed"), number("failed"));
                passed.or(failed)?;
                Some((passed.unwrap_or(0), failed.unwrap_or(0)))
            }
            Self::Node => {
                let count = line.strip_prefix("ℹ ")?;
                let number = |word: &str| count.strip_prefix(word)?.parse().ok();
                let (passed, failed) = (number("pass "), number("fail "));
                passed.or(failed)?;
                Some((passed.unwrap_or(0), failed.unwrap_or(0)))
            }
            Self::C => line.ends_with(": passed").then_some((1, 0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Printer::{C, Cargo, Node, Pytest};

    #[test]
    fn results_are_counted() {
        let line = "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.22s";
        assert_eq!(Cargo.counts(line), Some((3, 1)));
        assert_eq!(Cargo.counts("test a::b ... ok"), None);
        assert_eq!(Pytest.counts("12 passed in 0.31s"), Some((12, 0)));
        assert_eq!(Pytest.counts("=== 2 failed, 10 passed, 1 skipped in 1.20s ==="), Some((10, 2)));
        assert_eq!(Pytest.counts("2 failed in 1.20s"), Some((0, 2)));
        assert_eq!(Pytest.counts("FAILED test_app.py::test_it - in 2 places"), None);
        assert_eq!(Node.counts("ℹ pass 7"), Some((7, 0)));
        assert_eq!(Node.counts("ℹ fail 2"), Some((0, 2)));
        assert_eq!(Node.counts("ℹ duration_ms 512.5"), None);
        assert_eq!(C.counts("json_test: passed"), Some((1, 0)));
        assert_eq!(C.counts("json_test: assertion failed"), None);
    }
}
