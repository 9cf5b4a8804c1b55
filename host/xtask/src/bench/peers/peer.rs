//! The peers: how each is installed and started.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::interface::Interface;
use super::service::Service;
use crate::bench::processes::Running;
use crate::setup;
use crate::shell::{program, root, target};

/// A server of `benches/peers/`.
pub(super) struct Peer {
    /// Its name, which is also that of its folder.
    pub(super) name: &'static str,
    /// The package whose version stands for the peer's.
    package: &'static str,
    /// What else the version means.
    also: &'static str,
    port: u16,
    pub(super) interface: Interface,
    /// Its environment and its command, in its folder: the program is one of the packages'.
    /// `{port}` and `{service}` stand for the port and the service's name.
    environment: &'static [(&'static str, &'static str)],
    command: &'static str,
}

pub(super) const PEERS: [Peer; 6] = [
    Peer {
        name: "fastapi-plain",
        package: "fastapi",
        also: "as people write it",
        port: 18091,
        interface: Interface::Form { file: "file" },
        environment: &[],
        command: "uvicorn app:app --workers 2 --host 127.0.0.1 --port {port} --no-access-log \
                  --log-level warning",
    },
    Peer {
        name: "fastapi",
        package: "fastapi",
        also: "tuned by hand",
        port: 18090,
        interface: Interface::Body { under: "" },
        environment: &[],
        command: "uvicorn app:app --workers 2 --host 127.0.0.1 --port {port} --no-access-log \
                  --log-level warning",
    },
    Peer {
        name: "litserve",
        package: "litserve",
        also: "",
        port: 18092,
        interface: Interface::Body { under: "" },
        environment: &[],
        command: "python app.py {service} --port {port}",
    },
    Peer {
        name: "bentoml",
        package: "bentoml",
        also: "",
        port: 18093,
        interface: Interface::Lists { files: "images" },
        // Otherwise it writes to the home directory and reports its use.
        environment: &[
            ("BENTOML_HOME", "../../../target/bentoml"),
            ("BENTOML_DO_NOT_TRACK", "True"),
        ],
        command: "bentoml serve service:Peer --host 127.0.0.1 --port {port}",
    },
    Peer {
        name: "mlserver",
        package: "mlserver",
        also: "",
        port: 18094,
        interface: Interface::Base64Tensor,
        environment: &[("MLSERVER_HTTP_PORT", "{port}"), ("MLSERVER_GRPC_PORT", "18194")],
        command: "mlserver start .",
    },
    Peer {
        name: "triton",
        package: "nvidia-pytriton",
        also: "Triton 2.51.0, the Python backend",
        port: 18096,
        interface: Interface::BinaryTensor,
        environment: &[],
        command: "python serve.py --port {port}",
    },
];

impl Peer {
    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn folder(&self) -> PathBuf {
        root().join("benches/peers").join(self.name)
    }

    fn requirements(&self) -> String {
        format!("benches/peers/{}/requirements.txt", self.name)
    }

    /// Install its packages. Returns the interpreter that has them.
    pub(super) fn install(&self) -> Result<PathBuf> {
        // `bench load` has the same environment of `fastapi`.
        let name = match self.name {
            "fastapi" => self.name.to_owned(),
            other => format!("{other}-python"),
        };
        let python = setup::python_environment(&name, &self.requirements());
        python.context("its packages cannot be installed")
    }

    /// Its version, in words.
    pub(super) fn version(&self) -> Result<String> {
        let file = self.requirements();
        let text = std::fs::read_to_string(root().join(&file))?;
        let is_own = |line: &&str| line.split_once("==").is_some_and(|own| own.0 == self.package);
        let version = text.lines().find(is_own);
        let version = version.with_context(|| format!("{file} has no {}", self.package))?;
        let version = version.replace("==", " ");
        Ok(if self.also.is_empty() { version } else { format!("{version} ({})", self.also) })
    }

    fn fill(&self, text: &str, service: &str) -> String {
        text.replace("{port}", &self.port.to_string()).replace("{service}", service)
    }

    /// Its command, as one types it in its folder.
    pub(super) fn shown_command(&self) -> String {
        let variables = self.environment.iter().map(|(name, value)| format!("{name}={value} "));
        let text = format!("{}venv/bin/{}", variables.collect::<String>(), self.command);
        self.fill(&text, "SERVICE")
    }

    /// Start it and wait until it accepts connections.
    ///
    /// # Errors
    /// It ends, or does not listen. The message has the last line that it wrote.
    pub(super) fn start(&self, python: &Path, service: Service) -> Result<Running> {
        let name = format!("{}-{}.log", self.name, service.name());
        let log = target().join("peers").join(&name);
        let mut command = self.command(python, service);
        command.stderr(File::create(&log).with_context(|| log.display().to_string())?);
        Running::start(&mut command, &self.address()).with_context(|| {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            format!("it does not start (target/peers/{name}): {last}")
        })
    }

    fn command(&self, python: &Path, service: Service) -> Command {
        let text = self.fill(self.command, service.name());
        let mut words = text.split_whitespace();
        let mut command = program(python.with_file_name(words.next().unwrap_or_default()));
        command.args(words).current_dir(self.folder());
        for (name, value) in self.environment {
            command.env(name, self.fill(value, service.name()));
        }
        command
    }
}
