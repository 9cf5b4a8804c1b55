//! Running the tools that build plugins.

use std::io::{self, ErrorKind};
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};

/// Run to the end. What the tool prints goes to standard error, because standard output has the
/// command's result.
///
/// # Errors
/// The tool is missing, which `remedy` says how to fix, or it fails.
pub(crate) fn run(command: &mut Command, remedy: &str) -> Result<()> {
    let status = command.stdout(io::stderr()).status();
    let status = status.map_err(|error| cannot_run(command, &error, remedy))?;
    ensure!(status.success(), "{} failed: {status}", name_of(command));
    Ok(())
}

/// A tool that failed, and what it wrote to standard error.
pub(crate) struct Failed {
    pub(crate) text: String,
    pub(crate) error: anyhow::Error,
}

/// Run an installed tool to the end. What it writes is shown only by the caller.
///
/// # Errors
/// It cannot be run, or it fails.
pub(crate) fn run_reading(command: &mut Command) -> Result<(), Failed> {
    let output = command.output().map_err(|error| Failed {
        text: String::new(),
        error: cannot_run(command, &error, "install it"),
    })?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Failed {
            text: String::from_utf8_lossy(&output.stderr).into_owned(),
            error: anyhow!("{} failed: {}", name_of(command), output.status),
        }),
    }
}

/// Run to the end. Returns its standard output.
///
/// # Errors
/// As for [`run`], or the output is not UTF-8.
pub(crate) fn output(command: &mut Command, remedy: &str) -> Result<String> {
    let output = command.stderr(io::stderr()).output();
    let output = output.map_err(|error| cannot_run(command, &error, remedy))?;
    ensure!(output.status.success(), "{} failed: {}", name_of(command), output.status);
    let not_text = || format!("the output of {} is not UTF-8", name_of(command));
    String::from_utf8(output.stdout).with_context(not_text)
}

/// Whether the program is in a folder of `PATH`.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn cannot_run(command: &Command, error: &io::Error, remedy: &str) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow!("{} is missing: {remedy}", name_of(command)),
        _ => anyhow!("cannot run {}: {error}", name_of(command)),
    }
}

fn name_of(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}
