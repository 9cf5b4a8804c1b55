//! Running programs, and printing the current step.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The repository's root: of the clone that `cargo xtask` was called in, even where another clone
/// that shares its `target/` built this program.
pub(crate) fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.ancestors().nth(2).unwrap_or(&own).to_owned()
}

/// The folder of builds.
pub(crate) fn target() -> PathBuf {
    root().join("target")
}

/// Print the step that begins.
pub(crate) fn step(what: &str) {
    eprintln!("==> {what}");
}

/// A program to be run in the repository's root.
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// `cargo` as the repository's toolchain has it.
pub(crate) fn cargo() -> Command {
    let mut cargo = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Set by the cargo that runs this program. Some build scripts look at them: they would run
    // again, and the crates above them compile again, after each cargo that a person calls in
    // between.
    let own = std::env::vars_os().map(|(name, _)| name);
    let is_own = |name: &std::ffi::OsString| {
        let name = name.to_string_lossy();
        ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|prefix| name.starts_with(prefix))
    };
    own.filter(is_own).for_each(|name| {
        cargo.env_remove(name);
    });
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

/// Its standard output.
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
