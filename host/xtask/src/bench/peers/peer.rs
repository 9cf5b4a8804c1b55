//! The peers: how each is installed and started.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::interface::Interface;
use crate::bench::running::Running;
use crate::setup;
use crate::shell::{program, root, target};

/// A server of `benches/peers/`.
pub(crate) struct Peer {
    /// Its name, which is also that of its folder.
    pub(crate) name: &'static str,
    port: u16,
    pub(super) interface: Interface,
    /// Its environment and its command, in its folder: the program is one of the packages'.
    /// `{port}` and `{service}` stand for the port and the service's name.
    environment: &'static [(&'static str, &'static str)],
    command: &'static str,
}

pub(crate) const FASTAPI: Peer = Peer {
    name: "fastapi",
    port: 18090,
    interface: Interface::Body { under: "" },
    environment: &[],
    command: "uvicorn app:app --workers 2 --host 127.0.0.1 --port {port} --no-access-log \
              --log-level warning",
};

/// The newcomer's RandomForest.
pub(crate) const FOREST: Peer = Peer { name: "forest", port: 18097, ..FASTAPI };

/// The Redis of the job `recommend`, for both sides.
pub(crate) const REDIS_ADDRESS: &str = "127.0.0.1:18099";
pub(crate) const REDIS_PORT: &str = "18099";
pub(crate) const REDIS_URL: &str = "redis://127.0.0.1:18099/0";

/// The jobs that people bring. Each is a service.
pub(crate) const JOBS: Peer = Peer {
    name: "jobs",
    port: 18098,
    environment: &[("REDIS_URL", REDIS_URL)],
    command: "uvicorn {service}:app --workers 2 --loop uvloop --http httptools --host 127.0.0.1 \
              --port {port} --no-access-log --log-level warning",
    ..FASTAPI
};

/// Those with the services `ranker` and `photos`.
pub(crate) const PEERS: [Peer; 6] = [
    Peer {
        name: "fastapi-plain",
        port: 18091,
        interface: Interface::Form { file: "file" },
        ..FASTAPI
    },
    FASTAPI,
    Peer {
        name: "litserve",
        port: 18092,
        interface: Interface::Body { under: "" },
        environment: &[],
        command: "python app.py {service} --port {port}",
    },
    Peer {
        name: "bentoml",
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
        port: 18094,
        interface: Interface::Base64Tensor,
        environment: &[("MLSERVER_HTTP_PORT", "{port}"), ("MLSERVER_GRPC_PORT", "18194")],
        command: "mlserver start .",
    },
    Peer {
        name: "triton",
        port: 18096,
        interface: Interface::BinaryTensor,
        environment: &[],
        command: "python serve.py --port {port}",
    },
];

impl Peer {
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Install its packages. Returns the interpreter that has them.
    pub(crate) fn install(&self) -> Result<PathBuf> {
        let (name, packages) = match self.name {
            // They share an environment.
            "fastapi" | "forest" => ("fastapi".to_owned(), "fastapi"),
            other => (format!("{other}-python"), other),
        };
        let requirements = format!("benches/peers/{packages}/requirements.txt");
        setup::python_environment(&name, &requirements).context("its packages cannot be installed")
    }

    fn fill(&self, text: &str, service: &str) -> String {
        text.replace("{port}", &self.port.to_string()).replace("{service}", service)
    }

    /// Start it and wait until it accepts connections.
    ///
    /// # Errors
    /// It ends, or does not listen. The message has the last line that it wrote.
    pub(crate) fn start(&self, python: &Path, service: &str) -> Result<Running> {
        let name = format!("{}-{service}.log", self.name);
        let folder = target().join("peers");
        std::fs::create_dir_all(&folder)?;
        let log = folder.join(&name);
        let mut command = self.command(python, service);
        command.stderr(File::create(&log).with_context(|| log.display().to_string())?);
        Running::start(&mut command, &self.address()).with_context(|| {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            format!("it does not start (target/peers/{name}): {last}")
        })
    }

    fn command(&self, python: &Path, service: &str) -> Command {
        let text = self.fill(self.command, service);
        let mut words = text.split_whitespace();
        let mut command = program(python.with_file_name(words.next().unwrap_or_default()));
        command.args(words).current_dir(root().join("benches/peers").join(self.name));
        for (name, value) in self.environment {
            command.env(name, self.fill(value, service));
        }
        command
    }
}
