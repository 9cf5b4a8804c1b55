//! The command line, run in a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use super::files;
use super::server::Server;
use super::setup::ADMIN_TOKEN;

/// A folder with files, in which `gristmill` is run with these variables.
pub(crate) struct Cli {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Cli {
    /// Without a server, and without contexts.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let contexts = folder.path().join("contexts/config.toml");
        Self { folder, variables: Vec::new() }
            .with("GRISTMILL_CONTEXTS", contexts.to_str().unwrap())
    }

    /// For this server.
    pub(crate) fn of(server: &Server) -> Self {
        Self::new()
            .with("GRISTMILL_ADMIN_URL", server.admin.address())
            .with("GRISTMILL_ADMIN_TOKEN", ADMIN_TOKEN)
    }

    /// With the tools and the compiled runtimes that the build of the plugins has left.
    pub(crate) fn with_tools(self) -> Self {
        let tools = files::plugin_tools().canonicalize().unwrap();
        self.with("GRISTMILL_BUILD_DIR", tools.to_str().unwrap())
    }

    /// With this value of a variable.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(other, _)| other != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Write a file of its folder.
    pub(crate) fn write(&self, file: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// `gristmill` with these arguments, to be run. The test's own variables for it are unset.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
        let variables = std::env::vars_os().map(|(name, _)| name);
        for name in variables.filter(|name| name.to_string_lossy().starts_with("GRISTMILL_")) {
            command.env_remove(name);
        }
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        command.current_dir(self.folder()).args(arguments).envs(variables);
        command
    }

    /// Run it to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (out, stderr) = (text(output.stdout), text(output.stderr));
        CommandOutput { code: output.status.code(), out, stderr }
    }

    /// Run it, which must succeed. Returns its standard output.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.out
    }

    /// Run it, which must succeed with a JSON document.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let out = self.ok(&[arguments, &["--output", "json"]].concat());
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// Run it, which must fail with 1. Returns what it says.
    #[track_caller]
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        ended.stderr
    }
}

/// `gristmill` with these arguments, run in `directory`.
pub(crate) fn gristmill(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
    command.args(arguments).current_dir(directory);
    for variable in ["GRISTMILL_ADMIN_URL", "GRISTMILL_ADMIN_TOKEN"] {
        command.env_remove(variable);
    }
    // No contexts of the person who runs the tests.
    command.env("GRISTMILL_CONTEXTS", directory.join("no-contexts.toml"));
    command.env("RUST_BACKTRACE", "1").output().unwrap()
}

/// The message of a command that must fail: one line on standard error.
#[track_caller]
pub(crate) fn command_refused(directory: &Path, arguments: &[&str]) -> String {
    let output = gristmill(directory, arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(!error.to_lowercase().contains("backtrace"), "{error}");
    // Before it stands which server was asked.
    let message: String =
        error.split_inclusive('\n').filter(|line| !line.starts_with("server: ")).collect();
    assert!(message.starts_with("error: "), "{error}");
    message
}

/// The message of a push that must fail.
#[track_caller]
pub(crate) fn push_refused(arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("digits.wasm");
    fs::write(&file, files::plugin("digits")).unwrap();
    let push = ["plugin", "push", "digits.wasm"];
    let token = ["--token", ADMIN_TOKEN];
    let mut all = [&push[..], arguments].concat();
    if !arguments.contains(&"--token") {
        all.extend(token);
    }
    command_refused(directory.path(), &all)
}
