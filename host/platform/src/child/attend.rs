//! The parent's side of one child: feeds it, reads it and reaps it. Blocking, so it runs on a
//! thread of its own.

use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::error::ChildError;
use super::limits::ChildLimits;

/// Maximum bytes of a child's standard error that are kept.
const SAID_BYTES_MAX: usize = 4 << 10;

/// A child that can be killed from any thread, before its start and until it is reaped. Afterwards
/// its number may belong to another process.
#[derive(Clone, Default)]
pub(crate) struct Victim(Arc<Mutex<ChildState>>);

#[derive(Default)]
enum ChildState {
    #[default]
    NotStarted,
    Started(Child),
    /// Killed before its start, or ended and reaped.
    Over,
}

impl Victim {
    fn start(&self, mut command: Command) -> io::Result<Pipes> {
        let mut state = self.0.lock();
        if matches!(*state, ChildState::Over) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        // In its own process group, so that processes that it starts are killed with it. If one
        // remained, it would hold the pipes open.
        let mut child = command.process_group(0).spawn()?;
        let pipes = Pipes {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
        };
        *state = ChildState::Started(child);
        Ok(pipes)
    }

    pub(crate) fn kill(&self) {
        let mut state = self.0.lock();
        let killed = match &mut *state {
            ChildState::Started(child) => kill_process_group(Pid::from_child(child), Signal::KILL),
            ChildState::NotStarted | ChildState::Over => {
                *state = ChildState::Over;
                Ok(())
            }
        };
        if let Err(error) = killed {
            tracing::error!(%error, "a child process cannot be killed");
        }
    }

    fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        let mut state = self.0.lock();
        let ChildState::Started(child) = &mut *state else {
            return Err(io::ErrorKind::Interrupted.into());
        };
        let pid = Pid::from_child(child);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if waitid(WaitId::Pid(pid), options)?.is_none() {
            return Ok(None);
        }
        // Until the child is reaped, its number belongs to its group. So the processes that it
        // started end with it.
        let _ = kill_process_group(pid, Signal::KILL);
        let status = child.try_wait()?;
        *state = ChildState::Over;
        Ok(status)
    }
}

struct Pipes {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

/// Start the child, feed it, read its answer, and wait for its end. Returns as soon as the child
/// has ended or was killed.
pub(crate) fn attend(
    child: &Victim,
    command: Command,
    input: &[Bytes],
    limits: &ChildLimits,
) -> Result<Vec<u8>, ChildError> {
    let Pipes { stdin, stdout, stderr } = child.start(command)?;
    let (answer, stderr, status) = std::thread::scope(|scope| {
        let feeding = stdin.map(|stdin| scope.spawn(move || feed(stdin, input)));
        let reading = stdout.map(|stdout| scope.spawn(|| read_answer(child, stdout, limits)));
        let stderr = stderr.map(read_said).unwrap_or_default();
        let status = reap(child);
        // Standard input stays open until here: a child that reads its end ends itself.
        drop(feeding.map(|feeding| feeding.join()));
        let answer = reading.map(|reading| reading.join());
        (answer, stderr, status)
    });
    let answer = match answer {
        Some(Ok(answer)) => answer?,
        Some(Err(_)) => return Err(io::Error::other("the thread that reads it panicked").into()),
        None => Vec::new(),
    };
    verdict(status?, stderr, limits).map(|()| answer)
}

/// The pipe stays open for as long as the result is held. A child may end before it has read all.
fn feed(mut stdin: ChildStdin, input: &[Bytes]) -> ChildStdin {
    let _ = input.iter().try_for_each(|bytes| stdin.write_all(bytes)).and_then(|()| stdin.flush());
    stdin
}

fn read_answer(
    child: &Victim,
    stdout: ChildStdout,
    limits: &ChildLimits,
) -> Result<Vec<u8>, ChildError> {
    let mut answer = Vec::new();
    let read = stdout.take(limits.output_bytes.saturating_add(1)).read_to_end(&mut answer);
    if answer.len() as u64 > limits.output_bytes {
        child.kill();
        return Err(ChildError::TooMuchOutput(limits.output_bytes));
    }
    read?;
    Ok(answer)
}

/// Read all of the child's text until it ends, and keep its beginning, on one line.
fn read_said(mut stderr: impl Read) -> String {
    let (mut text, mut buffer) = (Vec::new(), [0; 4 << 10]);
    loop {
        match stderr.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => {
                let room = SAID_BYTES_MAX - text.len();
                text.extend_from_slice(&buffer[..len.min(room)]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let text = String::from_utf8_lossy(&text);
    text.trim().replace(|c: char| c.is_control(), " ")
}

/// Wait for the end without holding the lock, so that the child can be killed.
fn reap(child: &Victim) -> io::Result<ExitStatus> {
    // Its standard error has ended, so the child ends soon, or it hangs and will be killed.
    let mut pause = Duration::from_micros(100);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn verdict(status: ExitStatus, stderr: String, limits: &ChildLimits) -> Result<(), ChildError> {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(status), _) => Err(ChildError::Failed { status, stderr }),
        (None, signal) => {
            let signal = signal.unwrap_or_default();
            if signal == Signal::XCPU.as_raw() {
                return Err(ChildError::OutOfTime(limits.cpu));
            }
            if signal == Signal::XFSZ.as_raw() {
                return Err(ChildError::TooMuchOutput(limits.output_bytes));
            }
            if signal == Signal::ABORT.as_raw() && lacked_memory(&stderr) {
                return Err(ChildError::OutOfMemory { limit: limits.memory_bytes, stderr });
            }
            Err(ChildError::Killed { signal, stderr })
        }
    }
}

/// Whether a process that aborted said that an allocation had failed. Abort has no code of its own
/// for that, so the words of Rust's and of C++'s library are looked for, here only.
fn lacked_memory(stderr: &str) -> bool {
    let rust = stderr.contains("memory allocation of ") && stderr.contains(" bytes failed");
    rust || stderr.contains("std::bad_alloc")
}
