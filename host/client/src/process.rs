//! `gristmill serve` as a separate process, killed when it is dropped.

use std::io::{self, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use crate::addresses::Addresses;

/// The addresses for a server to listen on.
#[derive(Clone, Copy, Debug)]
pub struct Listen<'a> {
    /// The data plane's host and port.
    pub data: &'a str,
    /// gRPC's host and port.
    pub grpc: &'a str,
    /// The admin plane's host and port.
    pub admin: &'a str,
}

impl Listen<'_> {
    /// Free ports of the loopback interface, chosen by the system.
    pub const FREE_PORTS: Listen<'static> =
        Listen { data: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "127.0.0.1:0" };
}

/// The command `gristmill serve` with its data in `data_dir`. Callers may add flags and variables.
pub fn serve(gristmill: &Path, data_dir: &Path, listen: Listen<'_>) -> Command {
    let mut command = Command::new(gristmill);
    command
        .args(["serve", "--listen", listen.data, "--grpc-listen", listen.grpc])
        .args(["--admin-listen", listen.admin, "--data-dir"])
        .arg(data_dir);
    command
}

/// A server's process.
#[derive(Debug)]
pub struct ServerProcess {
    /// The process. Its standard output is in [`Self::stdout`].
    pub child: Child,
    /// The unread rest of its standard output.
    pub stdout: BufReader<ChildStdout>,
    /// The lines of its standard output so far.
    pub lines: Vec<String>,
}

/// Why a server did not start to serve.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program cannot be run.
    #[error("cannot start {program}")]
    Spawn {
        /// The program.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It ended before it served.
    #[error("the server did not start: {0}")]
    Ended(ExitStatus),
    /// The system failed to read its output or to wait for its end.
    #[error("cannot follow the server's start")]
    Follow(#[from] io::Error),
}

impl ServerProcess {
    /// Starts the process with an empty standard input. Its standard output is a pipe.
    ///
    /// # Errors
    /// [`StartError::Spawn`] where the program cannot be run.
    pub fn spawn(command: &mut Command) -> Result<Self, StartError> {
        let failed = |program: &Command, source| StartError::Spawn {
            program: program.get_program().to_string_lossy().into_owned(),
            source,
        };
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|source| failed(command, source))?;
        let Some(stdout) = child.stdout.take() else {
            return Err(failed(command, io::ErrorKind::BrokenPipe.into()));
        };
        Ok(Self { child, stdout: BufReader::new(stdout), lines: Vec::new() })
    }

    /// Waits until the server serves. Returns its addresses.
    ///
    /// # Errors
    /// [`StartError::Ended`] if it ends instead, [`StartError::Follow`] if its output cannot be
    /// read.
    pub fn wait_until_serving(&mut self) -> Result<Addresses, StartError> {
        match Addresses::read(&mut self.stdout, &mut self.lines)? {
            Some(addresses) => Ok(addresses),
            None => Err(StartError::Ended(self.child.wait()?)),
        }
    }

    /// Ends it at once, as `kill -9` does.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
