//! The child's side: bind itself to its limits, read its task, watch for its parent's end.

use std::io::{self, Read};

use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

use crate::ChildLimits;

/// The longest head: a job's name, limits and three numbers.
const HEAD_BYTES_MAX: u32 = 4 << 10;

/// What comes first on the child's standard input, after its length as four bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) job: String,
    pub(crate) limits: ChildLimits,
    pub(crate) document_len: usize,
    pub(crate) file_len: usize,
}

/// What a child has to do.
#[derive(Debug)]
pub struct Task {
    /// The kind of work.
    pub job: String,
    /// What is asked, in the job's own words.
    pub document: Vec<u8>,
    /// What it is asked about.
    pub file: Vec<u8>,
}

/// Enter the life of a child: the calling process is bound to the limits that its parent sent, and
/// ends when its parent does. Call this before anything else; the answer goes to standard output.
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

/// Nothing more is ever written to this pipe: it ends when the parent lets go of it, however.
fn end_with_parent() {
    let mut rest = [0; 1];
    while matches!(io::stdin().read(&mut rest), Err(error) if error.kind() == io::ErrorKind::Interrupted)
    {
    }
    let _ = kill_process(getpid(), Signal::KILL);
}
