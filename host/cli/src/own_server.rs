//! The command of a server that a command of this program starts for itself, on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use gristmill_client::{Listen, serve};

use crate::folders;

/// The variable of the setting `runtimes_directory`.
pub(crate) const RUNTIMES: &str = "GRISTMILL_RUNTIMES_DIRECTORY";

/// Variables with paths that the server gets. The caller's other variables are for other servers.
const PATHS: [&str; 3] = ["GRISTMILL_BUILD_DIR", RUNTIMES, "ORT_DYLIB_PATH"];

/// The file of this program.
pub(crate) fn program() -> Result<PathBuf> {
    std::env::current_exe().context("cannot find this program's file")
}

/// `gristmill serve` with its data in the folder `data`, an absolute path.
pub(crate) fn command(data: &Path, listen: Listen<'_>) -> Result<Command> {
    let mut command = serve(&program()?, data, listen);
    remove_variables(&mut command);
    // A configuration in the current folder is for another server.
    command.current_dir(data);
    for name in PATHS {
        if let Some(path) = folders::variable(name) {
            command.env(name, std::path::absolute(path)?);
        }
    }
    Ok(command)
}

/// Keep the caller's variables of this program from another process of it.
pub(crate) fn remove_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GRISTMILL_") {
            command.env_remove(name);
        }
    }
}
