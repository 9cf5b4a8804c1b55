//! The tests of the SDKs and of the sample plugins, in each language, and of the console. They run
//! natively, without a server.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::tally::{Printer, Tally, run_tests};
use crate::setup;
use crate::shell::{cargo, program, root, run, step, target};

/// The folders of the sample plugins in JavaScript, beneath the folder of the language.
const JS_PLUGINS: [&str; 3] = ["digits", "listen", "ranker"];

/// Those of Python.
const PYTHON_PLUGINS: [&str; 6] = ["digits", "embed", "number", "photo", "ranker", "recommend"];

/// Run them all.
///
/// # Errors
/// A tool is missing.
pub(super) fn run_all(gristmill: &Path) -> Result<Tally> {
    let mut tally = Tally::default();
    for language in [rust, python, js, console] {
        tally += language()?;
    }
    tally += c(gristmill)?;
    Ok(tally)
}

fn rust() -> Result<Tally> {
    let mut tally = Tally::default();
    for (what, manifest, features) in [
        ("the Rust SDK, its examples among them", "sdk/rust/Cargo.toml", None),
        ("the Rust SDK with all features", "sdk/rust/Cargo.toml", Some("--all-features")),
        ("the plugins in Rust", "plugins/Cargo.toml", None),
    ] {
        step(&format!("tests of {what}"));
        let mut tests = cargo();
        tests.args(["test", "--no-fail-fast", "--manifest-path", manifest]).args(features);
        tests.env("CARGO_TARGET_DIR", target().join("sdk"));
        // As in the host's workspace: a backtrace has lines, and no debugger is asked for more.
        tests.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
        tally += run_tests(&mut tests, Printer::Cargo)?;
    }
    Ok(tally)
}

fn python() -> Result<Tally> {
    step("tests of the Python SDK and of the plugins in Python");
    let python = setup::python_environment("sdk-python", "sdk/python/tests/requirements.txt")?;
    let plugins = PYTHON_PLUGINS.map(|plugin| format!("plugins/python/{plugin}"));
    let mut tally = Tally::default();
    for folder in ["sdk/python"].into_iter().chain(plugins.iter().map(String::as_str)) {
        let mut tests = program(&python);
        tests.current_dir(root().join(folder)).args(["-m", "pytest", "-q"]);
        // Nothing is written beside the SDK's sources: the server would be built again.
        tests.args(["-p", "no:cacheprovider"]).env("PYTHONDONTWRITEBYTECODE", "1");
        tests.env("PYTHONPATH", root().join("sdk/python/src"));
        tally += run_tests(&mut tests, Printer::Pytest)?;
    }
    Ok(tally)
}

fn js() -> Result<Tally> {
    step("tests of the JavaScript SDK and of the plugins in JavaScript");
    let mut tally = run_node("sdk/js")?;
    for plugin in JS_PLUGINS {
        let folder = format!("plugins/js/{plugin}");
        // The tests import the SDK of this clone by its name.
        run(program("node").args(["sdk/js/build/build.mjs", &folder, "--link"]))?;
        tally += run_node(&folder)?;
    }
    Ok(tally)
}

/// The tests in JavaScript of a folder.
fn run_node(folder: &str) -> Result<Tally> {
    let folder = root().join(folder);
    let entries =
        fs::read_dir(folder.join("test")).with_context(|| folder.display().to_string())?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    let is_test = |path: &&PathBuf| path.to_string_lossy().ends_with(".test.js");
    let mut tests = program("node");
    tests.current_dir(&folder).args(["--test", "--test-reporter=spec"]);
    run_tests(tests.args(paths.iter().filter(is_test)), Printer::Node)
}

/// The parts of the console that need no browser.
fn console() -> Result<Tally> {
    step("tests of the console");
    let mut tests = program("node");
    tests.args(["--test", "--test-reporter=spec"]).args(crate::console::tests()?);
    run_tests(&mut tests, Printer::Node)
}

fn c(gristmill: &Path) -> Result<Tally> {
    step("tests of the C SDK and of the plugins in C");
    let mut bindings = program("sdk/c/bindings.sh");
    setup::set_build_folders(&mut bindings);
    run(bindings.env("GRISTMILL", gristmill))?;
    run_tests(program("make").args(["-C", "sdk/c", "test"]), Printer::C)
}
