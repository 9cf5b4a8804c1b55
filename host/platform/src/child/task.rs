//! The child's side: bind itself to its limits, read its task, watch for its parent's end.

use std::io::{self, Read};

use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

use super::limits::ChildLimits;

/// The longest head: a job's name, limits and three numbers.
const HEAD_BYTES_MAX: u32 = 4 << 10;

/// The head of the child's standard input; its length stands before it as four bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) job: String,
    pub(crate) limits: ChildLimits,
    pub(crate) document_len: usize,
    pub(crate) file_len: usize,
}

/// The work of a child.
#[derive(Debug)]
pub struct Task {
    /// The kind of work.
    pub job: String,
    /// The job's own description of the work.
    pub document: Vec<u8>,
    /// The file that the work is about.
    pub file: Vec<u8>,
}

/// Become a child: bind the calling process to the limits that its parent sent, and end it when its
/// parent ends. Call this before anything else. The answer goes to standard output.
///
/// # Errors
/// Standard input does not hold a task, or the limits cannot be set.
pub fn enter() -> io::Result<Task> {
    let mut input = io::stdin().lock();
    let mut len = [0; 4];
    input.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len);
    if len > HEAD_BYTES_MAX {
        return Err(io::Error::other(format!("a head of {len} bytes")));
    }
    let head: Head = serde_json::from_slice(&read(&mut input, len as usize)?)?;
    head.limits.apply()?;
    let document = read(&mut input, head.document_len)?;
    let file = read(&mut input, head.file_len)?;
    drop(input);
    std::thread::Builder::new().name("lifeline".into()).spawn(end_with_parent)?;
    Ok(Task { job: head.job, document, file })
}

fn read(input: &mut impl Read, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(io::Error::other)?;
    input.take(len as u64).read_to_end(&mut bytes)?;
    if bytes.len() < len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// The parent writes nothing more to this pipe. The pipe ends when the parent drops it or ends.
fn end_with_parent() {
    let mut rest = [0; 1];
    let was_interrupted = |error: io::Error| error.kind() == io::ErrorKind::Interrupted;
    while io::stdin().read(&mut rest).is_err_and(was_interrupted) {}
    let _ = kill_process(getpid(), Signal::KILL);
}
