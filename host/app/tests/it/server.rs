//! The server's process: started with its own data directory, killed when dropped.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::client::Client;
use crate::files;

/// The admin token of every server that is given one.
pub(crate) const ADMIN_TOKEN: &str = "the-tests-admin-token";

/// Longer than anything takes that is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

const DATA_PLANE: &str = "data plane  ";
const GRPC: &str = "grpc        ";
const ADMIN_PLANE: &str = "admin plane ";

/// How a server is started.
pub(crate) struct Setup {
    directory: TempDir,
    flags: Vec<String>,
    variables: Vec<(String, String)>,
    onnxruntime: Option<PathBuf>,
    admin_token: Option<String>,
    /// Whether standard error is a pipe that nobody reads.
    log_is_unread: bool,
    open_files: Option<usize>,
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
            open_files: None,
        }
    }

    /// With one more flag.
    pub(crate) fn flag(mut self, name: &str, value: &str) -> Self {
        self.flags.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// With one more variable in its environment.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With `ORT_DYLIB_PATH` being `library`, or not set.
    pub(crate) fn onnxruntime(self, library: Option<&Path>) -> Self {
        Self { onnxruntime: library.map(Path::to_owned), ..self }
    }

    /// Without an admin token: the server makes one.
    pub(crate) fn without_admin_token(self) -> Self {
        Self { admin_token: None, ..self }
    }

    /// With a log that nobody reads, until [`Server::wait_reading_the_log`] does.
    pub(crate) fn unread_log(self) -> Self {
        Self { log_is_unread: true, ..self }
    }

    /// With at most `max` open files.
    pub(crate) fn open_files(self, max: usize) -> Self {
        Self { open_files: Some(max), ..self }
    }

    /// Without any further flag given before.
    pub(crate) fn without_flags(self) -> Self {
        Self { flags: Vec::new(), ..self }
    }

    /// Where the server keeps its data.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Start the server, which listens when this returns.
    pub(crate) fn start(self) -> Server {
        let mut process = Process::spawn(&self);
        let lines = process.stdout_until(ADMIN_PLANE);
        let Some(lines) = lines else {
            panic!("the server did not start:\n{}", read_log(&self.log_path()));
        };
        let said = lines.last().and_then(|line| serde_json::from_str::<Value>(line).ok());
        let address = |prefix: &str, key: &str| match &said {
            Some(said) => said[key].as_str().unwrap().to_owned(),
            None => {
                let line = lines.iter().find_map(|line| line.strip_prefix(prefix));
                line.unwrap_or_else(|| panic!("no {prefix:?} in {lines:?}")).to_owned()
            }
        };
        let addresses =
            [address(DATA_PLANE, "data"), address(GRPC, "grpc"), address(ADMIN_PLANE, "admin")];
        Server::new(process, self, (addresses, lines))
    }

    /// Start the server, which listens when this returns, but may not have loaded its state.
    pub(crate) fn start_loading(self) -> Server {
        let mut process = Process::spawn(&self);
        let until = Instant::now() + PATIENCE;
        loop {
            let log = read_log(&self.log_path());
            let listens = log.lines().find(|line| line.contains("listening"));
            if let Some(line) = listens.filter(|_| log.ends_with('\n')) {
                let address = |name: &str| {
                    let value = line.split(' ').find_map(|field| field.strip_prefix(name));
                    value.unwrap_or_else(|| panic!("no {name:?} in {line:?}")).to_owned()
                };
                let addresses = ["data=", "grpc=", "admin="].map(address);
                return Server::new(process, self, (addresses, Vec::new()));
            }
            let ended = process.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < until, "it does not listen:\n{log}");
            thread::yield_now();
        }
    }

    /// Start the server where it must refuse to start: returns what it says on standard error.
    #[track_caller]
    pub(crate) fn refused(self) -> String {
        self.refuses()
    }

    /// The same, where the directory is used again.
    #[track_caller]
    pub(crate) fn refuses(&self) -> String {
        let mut process = Process::spawn(self);
        let lines = process.stdout_until(ADMIN_PLANE);
        assert!(lines.is_none(), "the server started: {lines:?}");
        let status = process.child.wait().unwrap();
        let log = read_log(&self.log_path());
        assert_eq!(status.code(), Some(1), "{log}");
        log
    }

    /// Run another command of the binary, in the same place.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
        command.current_dir(self.directory.path()).args(arguments).output().unwrap()
    }

    fn command(&self) -> Command {
        let binary = env!("CARGO_BIN_EXE_gristmill");
        let mut command = match self.open_files {
            None => Command::new(binary),
            Some(max) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", r#"ulimit -n "$0" && exec "$@""#, &max.to_string(), binary]);
                shell
            }
        };
        // Run where there is no gristmill.toml to be picked up.
        command.current_dir(self.directory.path());
        command.arg("serve").arg("--data-dir").arg(self.data_dir());
        let own = std::env::vars_os().map(|(name, _)| name);
        for name in own.filter(|name| name.to_string_lossy().starts_with("GRISTMILL_")) {
            command.env_remove(name);
        }
        let given = |flag: &&str| !self.flags.iter().any(|given| given == flag);
        for flag in ["--listen", "--grpc-listen", "--admin-listen"].into_iter().filter(given) {
            command.args([flag, "127.0.0.1:0"]);
        }
        if given(&"--shutdown-delay-s") {
            command.args(["--shutdown-delay-s", "0"]);
        }
        command.args(&self.flags).env_remove("ORT_DYLIB_PATH").env("NO_COLOR", "1");
        // It is the server's own work to set this.
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
}

/// A server that listens.
pub(crate) struct Server {
    /// The data plane, without a key.
    pub(crate) data: Client,
    /// The data plane over gRPC: host and port.
    pub(crate) grpc: String,
    /// The admin plane, with the admin token where the server was given one.
    pub(crate) admin: Client,
    /// What it wrote to standard output until it listened.
    pub(crate) first_lines: Vec<String>,
    process: Process,
    setup: Setup,
}

impl Server {
    fn new(
        process: Process,
        setup: Setup,
        ([data, grpc, admin], first_lines): ([String; 3], Vec<String>),
    ) -> Self {
        let grpc = grpc.trim_start_matches("http://").to_owned();
        let (data, admin) =
            (Client::new(data, None), Client::new(admin, setup.admin_token.clone()));
        Self { data, grpc, admin, first_lines, process, setup }
    }

    /// One with nothing on it.
    pub(crate) fn start() -> Self {
        Setup::new().start()
    }

    /// All it has written to standard error.
    pub(crate) fn log(&self) -> String {
        read_log(&self.setup.log_path())
    }

    /// The log once it holds `text`: a line is written a moment after what it tells of.
    #[track_caller]
    pub(crate) fn log_with(&self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let log = self.log();
            if log.contains(text) {
                return log;
            }
            assert!(Instant::now() < until, "{text:?} is missing from:\n{log}");
            thread::yield_now();
        }
    }

    /// The admin token that it made and showed.
    #[track_caller]
    pub(crate) fn shown_token(&self) -> String {
        let line = self.first_lines.iter().find_map(|line| line.strip_prefix("admin token "));
        let line = line.unwrap_or_else(|| panic!("no token in {:?}", self.first_lines));
        line.strip_suffix(" (shown only this once)").unwrap().to_owned()
    }

    /// Whether it showed a token.
    pub(crate) fn shows_token(&self) -> bool {
        self.first_lines.iter().any(|line| line.contains("admin token"))
    }

    /// How it was started.
    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Fails unless the log comes to hold `text`; each look is a request, which writes a line itself.
    #[track_caller]
    pub(crate) fn logs(&self, text: &str) {
        let mut looks = (0..1000).map(|_| (self.status(), self.log()).1);
        assert!(looks.any(|log| log.contains(text)), "{text:?} is not in the log:\n{}", self.log());
    }

    /// Fails where the process has ended.
    #[track_caller]
    pub(crate) fn assert_alive(&mut self) {
        let ended = self.process.child.try_wait().unwrap();
        assert!(ended.is_none(), "the server ended with {ended:?}:\n{}", self.log());
    }

    /// End it at once, as `kill -9` does.
    pub(crate) fn kill(mut self) -> Setup {
        self.process.end();
        self.setup
    }

    /// Where it keeps its data.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.setup.data_dir()
    }

    /// The processes that it has started and that have not ended.
    pub(crate) fn children(&self) -> Vec<u32> {
        let own = self.process.child.id();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
            let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A process may end while it is looked at.
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
            if parent.is_some_and(|parent| parent.trim() == own.to_string()) {
                found.push(number);
            }
        }
        found
    }

    /// Its memory just now.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.memory("VmRSS:")
    }

    /// Let the peak be what it has just now.
    pub(crate) fn forget_peak(&self) {
        let path = format!("/proc/{}/clear_refs", self.process.child.id());
        fs::write(path, "5").unwrap();
    }

    /// The most memory that it ever had, or since the last [`Self::forget_peak`].
    pub(crate) fn peak_resident_bytes(&self) -> usize {
        self.memory("VmHWM:")
    }

    /// What it has of the address space just now, used or not.
    pub(crate) fn mapped_bytes(&self) -> usize {
        self.memory("VmSize:")
    }

    /// The CPU time that its threads of this name have used, in milliseconds, to 10 ms a thread.
    pub(crate) fn cpu_ms_of(&self, thread: &str) -> u64 {
        let threads = format!("/proc/{}/task", self.process.child.id());
        let mut ticks = 0;
        for own in fs::read_dir(threads).unwrap() {
            // A thread may end meanwhile.
            let stat = fs::read_to_string(own.unwrap().path().join("stat")).unwrap_or_default();
            let Some((head, fields)) = stat.rsplit_once(')') else { continue };
            if head.split_once('(').is_some_and(|(_, name)| name == thread) {
                // User and system time are fields 14 and 15; the third comes first here.
                let fields = fields.split_whitespace().skip(11).take(2);
                ticks += fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>();
            }
        }
        ticks * 10
    }

    fn memory(&self, line: &str) -> usize {
        let status = format!("/proc/{}/status", self.process.child.id());
        let status = fs::read_to_string(status).unwrap();
        let value = status.lines().find_map(|own| own.strip_prefix(line)).unwrap();
        value.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
    }

    /// Ask it to end, as a supervisor does.
    pub(crate) fn signal_terminate(&self) {
        let pid = self.process.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    /// Read the log that nobody has read so far, to its end, and wait until it has ended.
    pub(crate) fn wait_reading_the_log(mut self) -> (String, ExitStatus) {
        let mut log = String::new();
        self.process.unread.take().unwrap().read_to_string(&mut log).unwrap();
        (log, self.process.child.wait().unwrap())
    }

    /// Wait until it has ended: what remained on standard output, and how it ended.
    pub(crate) fn wait(mut self) -> (String, ExitStatus, Setup) {
        let mut rest = String::new();
        self.process.stdout.read_to_string(&mut rest).unwrap();
        let status = self.process.child.wait().unwrap();
        (rest, status, self.setup)
    }
}

struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// The log, where nobody reads it.
    unread: Option<ChildStderr>,
    log: PathBuf,
}

impl Process {
    fn spawn(setup: &Setup) -> Self {
        let log = setup.log_path();
        let stderr: File = OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let mut command = setup.command();
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(if setup.log_is_unread { Stdio::piped() } else { stderr.into() });
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let unread = child.stderr.take();
        Self { child, stdout, unread, log }
    }

    /// The lines up to the one that begins with `prefix`; none where there is no such line.
    fn stdout_until(&mut self, prefix: &str) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        for line in self.stdout.by_ref().lines() {
            lines.push(line.unwrap());
            // In JSON it is one line.
            let last = |line: &String| line.starts_with(prefix) || line.starts_with('{');
            if lines.last().is_some_and(last) {
                return Some(lines);
            }
        }
        None
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
        if thread::panicking() {
            let log = read_log(&self.log);
            let last = log.lines().rev().take(20).collect::<Vec<_>>();
            let last: Vec<_> = last.into_iter().rev().map(|line| cut(line, 300)).collect();
            eprintln!("the server's last lines:\n{}", last.join("\n"));
        }
    }
}

fn cut(line: &str, len: usize) -> &str {
    &line[..line.floor_char_boundary(len)]
}

fn read_log(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
