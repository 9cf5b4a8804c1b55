//! Panics as lines of the log, seen from outside: this program runs itself.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use std::cell::Cell;
use std::panic::catch_unwind;
use std::process::Command;

use gristmill_log::{LogFormat, init};
use serde_json::json;

/// Names the filter of the process that panics.
const FILTER: &str = "GRISTMILL_TEST_FILTER";

thread_local! {
    static WORKS_ON_INPUT: Cell<bool> = const { Cell::new(false) };
}

/// Panics three times if it is run by another test: in its own code, in a library, and over an
/// input.
#[test]
fn panicking() {
    let Ok(filter) = std::env::var(FILTER) else { return };
    let log = init(&filter, LogFormat::Text, &[], || WORKS_ON_INPUT.get()).unwrap();
    catch_unwind(|| panic!("in its own code")).unwrap_err();
    catch_unwind(|| json!(1)["a number"] = json!(2)).unwrap_err();
    WORKS_ON_INPUT.set(true);
    catch_unwind(|| json!(1)["an input"] = json!(2)).unwrap_err();
    log.flush();
}

fn log(filter: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "panicking", "--nocapture"]).env(FILTER, filter);
    let output = command.output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{log}");
    log
}

#[test]
fn a_panic_is_an_error_but_one_over_an_input_is_a_line_for_debugging() {
    let lines = log("info");
    assert_eq!(lines.matches("ERROR").count(), 2, "{lines}");
    assert!(lines.contains("in its own code") && lines.contains("a number"), "{lines}");
    assert!(!lines.contains("an input"), "{lines}");
    let lines = log("debug");
    let input = lines.lines().find(|line| line.contains("an input")).unwrap();
    assert!(input.contains("DEBUG") && input.contains("refused an input"), "{input}");
}

#[test]
fn a_panic_names_no_folder_of_the_machine_that_built_it() {
    let lines = log("debug");
    assert!(lines.contains("tests/it/main.rs:"), "{lines}");
    assert!(lines.contains("serde_json-") && lines.contains("/src/value/"), "{lines}");
    assert!(!lines.contains("registry"), "{lines}");
}
