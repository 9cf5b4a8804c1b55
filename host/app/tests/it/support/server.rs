//! A server that listens, killed when dropped.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use gristmill_client::Addresses;
use gristmill_core::Digest;
use gristmill_transport::credentials::KeyHasher;

use super::client::Client;
use super::eventually::{eventually, eventually_some};
use super::process::Process;
use super::setup::Setup;

/// A server that listens.
pub(crate) struct Server {
    /// The data plane, without a key.
    pub(crate) data: Client,
    /// The data plane over gRPC: host and port.
    pub(crate) grpc: String,
    /// The plane of the metrics, if they have their own.
    pub(crate) metrics: Option<Client>,
    /// The admin plane, with the admin token where the server was given one.
    pub(crate) admin: Client,
    pub(super) process: Process,
    setup: Setup,
}

impl Server {
    pub(super) fn new(process: Process, setup: Setup, addresses: &Addresses) -> Self {
        let client = |address, token| match &setup.tls {
            Some(tls) => Client::new(address, token).with_tls(tls.clone()),
            None => Client::new(address, token),
        };
        let data = client(&addresses.data, None);
        let admin = client(&addresses.admin, setup.admin_token.as_deref());
        let grpc = addresses.grpc_authority().to_owned();
        let metrics = addresses.metrics.as_deref().map(|address| client(address, None));
        Self { data, grpc, metrics, admin, process, setup }
    }

    /// One with nothing on it.
    pub(crate) fn start() -> Self {
        Setup::new().start()
    }

    /// All it has written to standard error.
    pub(crate) fn log(&self) -> String {
        self.setup.log()
    }

    /// The lines that it wrote to standard output until it listened.
    pub(crate) fn first_lines(&self) -> &[String] {
        &self.process.server.lines
    }

    /// Wait until the log has `text`, because lines are written a moment after their events.
    /// Returns the log.
    #[track_caller]
    pub(crate) fn log_with(&self, text: &str) -> String {
        eventually_some(&format!("{text:?} in the log"), || {
            Some(self.log()).filter(|log| log.contains(text))
        })
    }

    /// The admin token that it made and showed.
    #[track_caller]
    pub(crate) fn shown_token(&self) -> String {
        let line = self.first_lines().iter().find_map(|line| line.strip_prefix("admin token "));
        let line = line.unwrap_or_else(|| panic!("no token in {:?}", self.first_lines()));
        line.strip_suffix(" (shown only this once)").unwrap().to_owned()
    }

    /// Whether it showed a token.
    pub(crate) fn shows_token(&self) -> bool {
        self.first_lines().iter().any(|line| line.contains("admin token"))
    }

    /// How it was started.
    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Wait until the log has `text`. Each poll makes a request, which writes a line as well.
    #[track_caller]
    pub(crate) fn logs(&self, text: &str) {
        eventually(&format!("{text:?} in the log"), || {
            self.status();
            self.log().contains(text)
        });
    }

    /// Fails where the process has ended.
    #[track_caller]
    pub(crate) fn assert_alive(&mut self) {
        let ended = self.process.server.child.try_wait().unwrap();
        assert!(ended.is_none(), "the server ended with {ended:?}:\n{}", self.log());
    }

    /// End it at once, as `kill -9` does.
    pub(crate) fn kill(mut self) -> Setup {
        self.process.server.kill();
        self.setup
    }

    /// Where it keeps its data.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.setup.data_dir()
    }

    /// The hexadecimal digits that it keeps in place of a key or a token.
    pub(crate) fn kept_hash(&self, key: &str) -> String {
        let secret = fs::read_to_string(self.data_dir().join("hash-key")).unwrap();
        let secret: Digest = format!("sha256:{}", secret.trim()).parse().unwrap();
        let hash = KeyHasher::new(secret.as_bytes()).hash(key).to_string();
        hash.rsplit(':').next().unwrap().to_owned()
    }

    /// Ask it to end, as a supervisor does.
    pub(crate) fn signal_terminate(&self) {
        let pid = self.process.server.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    /// Read the whole log and wait until the server has ended. The log must be unread so far.
    pub(crate) fn wait_reading_the_log(mut self) -> (String, ExitStatus) {
        let mut log = String::new();
        self.process.server.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (log, self.process.server.child.wait().unwrap())
    }

    /// Wait until it has ended. Returns the unread standard output and the exit status.
    pub(crate) fn wait(mut self) -> (String, ExitStatus, Setup) {
        let mut rest = String::new();
        self.process.server.stdout.read_to_string(&mut rest).unwrap();
        let status = self.process.server.child.wait().unwrap();
        (rest, status, self.setup)
    }
}
