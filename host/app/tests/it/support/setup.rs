//! The setup of a server: its flags, its variables, its limits and its log.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use gristmill_client::{Addresses, OwnFiles, ServerProcess, StartError, Tls};
use tempfile::TempDir;

use super::eventually::eventually_some;
use super::files;
use super::process::Process;
use super::server::Server;
use super::tls::Authority;

/// The admin token of every server that is given one.
pub(crate) const ADMIN_TOKEN: &str = "the-tests-admin-token";

/// The setup of a server.
pub(crate) struct Setup {
    directory: TempDir,
    flags: Vec<String>,
    variables: Vec<(String, String)>,
    onnxruntime: Option<PathBuf>,
    pub(super) admin_token: Option<String>,
    /// Whether standard error is a pipe that is not read.
    log_is_unread: bool,
    /// What `ulimit` limits, by its flags.
    limits: Vec<(&'static str, usize)>,
    /// Whether it obeys the permissions of files, even as root.
    obeys_permissions: bool,
    /// How clients of its planes use TLS.
    pub(super) tls: Option<Tls>,
}

impl Setup {
    /// A new data directory, ONNX Runtime, and [`ADMIN_TOKEN`].
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            flags: Vec::new(),
            variables: Vec::new(),
            onnxruntime: Some(files::onnxruntime()),
            admin_token: Some(ADMIN_TOKEN.into()),
            log_is_unread: false,
            limits: Vec::new(),
            obeys_permissions: false,
            tls: None,
        }
    }

    /// With one more flag.
    pub(crate) fn flag(mut self, name: &str, value: &str) -> Self {
        match self.flags.iter().position(|flag| flag == name) {
            Some(at) => value.clone_into(&mut self.flags[at + 1]),
            None => self.flags.extend([name.to_owned(), value.to_owned()]),
        }
        self
    }

    /// With the compiled runtimes of languages that the build of the plugins has left, so that this
    /// server compiles none: that takes long in the profile of the tests.
    pub(crate) fn with_runtimes(self) -> Self {
        let built = files::plugin_tools().join("runtimes");
        copy_files(&built, &self.data_dir().join("compiled"));
        self.flag("--compile-timeout-s", "1800")
    }

    /// With TLS on all planes. The certificate of this authority is written as `server.crt` and
    /// `server.key`.
    pub(crate) fn with_tls(self, authority: &Authority) -> Self {
        let files = authority.write_pair("server", &authority.pair());
        let setup = self.flag("--tls-certificate", files.certificate.to_str().unwrap());
        setup.flag("--tls-key", files.key.to_str().unwrap()).trusting(authority)
    }

    /// With clients that trust this authority.
    pub(crate) fn trusting(self, authority: &Authority) -> Self {
        Self { tls: Some(authority.client(None)), ..self }
    }

    /// With clients that trust this authority and have a certificate of their own.
    pub(crate) fn with_own(self, authority: &Authority, identity: &OwnFiles) -> Self {
        Self { tls: Some(authority.client(Some(identity.clone()))), ..self }
    }

    /// With one more variable in its environment.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With `ORT_DYLIB_PATH` set to `library`, or not set.
    pub(crate) fn onnxruntime(self, library: Option<&Path>) -> Self {
        Self { onnxruntime: library.map(Path::to_owned), ..self }
    }

    /// Without an admin token: the server makes one.
    pub(crate) fn without_admin_token(self) -> Self {
        Self { admin_token: None, ..self }
    }

    /// With a log that is not read until [`Server::wait_reading_the_log`] does.
    pub(crate) fn unread_log(self) -> Self {
        Self { log_is_unread: true, ..self }
    }

    /// With at most `max` open files.
    pub(crate) fn open_files(mut self, max: usize) -> Self {
        self.limits.push(("-n", max));
        self
    }

    /// With files that have at most so many blocks, of 512 bytes or of 1 KiB: a disk that is full.
    pub(crate) fn file_blocks(mut self, max: usize) -> Self {
        self.limits.push(("-f", max));
        self
    }

    /// With so many KiB of addresses.
    pub(crate) fn address_space_kib(mut self, max: usize) -> Self {
        self.limits.push(("-v", max));
        self
    }

    /// Without the flags given so far.
    pub(crate) fn without_flags(self) -> Self {
        Self { flags: Vec::new(), ..self }
    }

    /// Where the server keeps its data.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Start the server, which listens when this returns.
    pub(crate) fn start(self) -> Server {
        let mut process = self.spawn();
        match process.server.wait_until_serving() {
            Ok(addresses) => Server::new(process, self, &addresses),
            Err(error) => panic!("{error}:\n{}", self.log()),
        }
    }

    /// Start the server, which listens when this returns, but may not have loaded its state.
    pub(crate) fn start_loading(self) -> Server {
        let mut process = self.spawn();
        let addresses = eventually_some("it listens", || {
            let ended = process.server.child.try_wait().unwrap();
            let log = self.log();
            assert!(ended.is_none(), "it does not listen:\n{log}");
            let line = log.lines().find(|line| line.contains("listening"))?;
            let address = |name: &str| {
                let value = line.split(' ').find_map(|field| field.strip_prefix(name));
                value.unwrap_or_else(|| panic!("no {name:?} in {line:?}")).to_owned()
            };
            log.ends_with('\n').then(|| Addresses {
                data: address("data="),
                grpc: address("grpc="),
                metrics: None,
                admin: address("admin="),
            })
        });
        Server::new(process, self, &addresses)
    }

    /// Start the server, which must refuse to start. Returns its standard error.
    #[track_caller]
    pub(crate) fn start_refused(&self) -> String {
        let mut process = self.spawn();
        match process.server.wait_until_serving() {
            Err(StartError::Ended(status)) if status.code() == Some(1) => self.log(),
            other => panic!("the server did not refuse to start: {other:?}:\n{}", self.log()),
        }
    }

    /// Run another command of the binary, in the same place.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
        command.current_dir(self.directory.path()).args(arguments).output().unwrap()
    }

    fn spawn(&self) -> Process {
        let log = OpenOptions::new().create(true).append(true).open(self.log_path()).unwrap();
        let mut command = self.command();
        command.stderr(if self.log_is_unread { Stdio::piped() } else { log.into() });
        Process { server: ServerProcess::spawn(&mut command).unwrap(), log: self.log_path() }
    }

    /// A server that obeys the permissions of files, even as root.
    pub(crate) fn obeying_permissions(self) -> Self {
        Self { obeys_permissions: true, ..self }
    }

    fn command(&self) -> Command {
        let binary = env!("CARGO_BIN_EXE_gristmill");
        let mut command = match &self.limits[..] {
            [] if self.obeys_permissions => {
                // Only root has these capabilities, and only root can drop them.
                let drops = r#"[ "$(id -u)" = 0 ] && exec setpriv --bounding-set \
                    -dac_override,-dac_read_search "$0" "$@"; exec "$0" "$@""#;
                let mut shell = Command::new("sh");
                shell.args(["-c", drops, binary]);
                shell
            }
            [] => Command::new(binary),
            limits => {
                let limits = limits.iter().map(|(flag, max)| format!("ulimit {flag} {max} && "));
                let limits: String = limits.collect();
                // A write beyond the limit fails rather than ends the server.
                let script = format!(r#"trap '' XFSZ; {limits} exec "$0" "$@""#);
                let mut shell = Command::new("sh");
                shell.args(["-c", &script, binary]);
                shell
            }
        };
        // The server must not find a gristmill.toml.
        command.current_dir(self.directory.path());
        command.arg("serve").arg("--data-dir").arg(self.data_dir());
        let variables = std::env::vars_os().map(|(name, _)| name);
        for name in variables.filter(|name| name.to_string_lossy().starts_with("GRISTMILL_")) {
            command.env_remove(name);
        }
        let is_missing = |flag: &&str| !self.flags.iter().any(|other| other == flag);
        for flag in ["--listen", "--grpc-listen", "--admin-listen"].into_iter().filter(is_missing) {
            command.args([flag, "127.0.0.1:0"]);
        }
        if is_missing(&"--shutdown-delay-s") {
            command.args(["--shutdown-delay-s", "0"]);
        }
        if is_missing(&"--prepare-runtimes") {
            // A runtime takes long to compile in the profile of the tests.
            command.args(["--prepare-runtimes", "false"]);
        }
        command.args(&self.flags).env_remove("ORT_DYLIB_PATH").env("NO_COLOR", "1");
        // The server must set this itself.
        command.env_remove("ORT_DISABLE_TELEMETRY");
        command.envs(self.onnxruntime.iter().map(|library| ("ORT_DYLIB_PATH", library)));
        command.envs(self.admin_token.iter().map(|token| ("GRISTMILL_ADMIN_TOKEN", token)));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Where standard error goes.
    pub(crate) fn log_path(&self) -> PathBuf {
        self.directory.path().join("stderr.log")
    }

    /// All that it has written to standard error.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap()
    }
}

/// Copy the files of a folder, and those of its folders, if there is such a folder. A file that is
/// gone meanwhile, as one that a build has written and renamed, is left out.
fn copy_files(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        fs::create_dir_all(to).unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_files(&entry.path(), &to),
            false => match fs::copy(entry.path(), to) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                copied => _ = copied.unwrap(),
            },
        }
    }
}
