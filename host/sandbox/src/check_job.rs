//! The check of a file in a child process, for callers that want its findings and compile nothing.
//!
//! The child answers with the findings as a JSON document, the document's length before it, and the
//! component behind it. The caller reads only the document, as data.

use std::io::{self, Write};

use bytes::Bytes;
use gristmill_platform::child::{ChildError, ChildLimits, ChildRunner, Job, Output, Task};

use crate::check_component::{CheckedComponent, check_component};
use crate::load_error::LoadError;

/// The name of the job that [`check`] does.
pub const CHECK_JOB: &str = "check-plugin";

/// The findings, or the reason why the file is refused.
type Findings = Result<CheckedComponent, String>;

/// The child's side: check the task's file and write the answer.
///
/// # Errors
/// The answer cannot be written. A file that is refused is an answer.
pub fn check(task: &Task, out: &mut impl Write) -> io::Result<()> {
    let findings: Findings = check_component(&task.file).map_err(|error| error.to_string());
    let document = serde_json::to_vec(&findings)?;
    out.write_all(&(document.len() as u64).to_le_bytes())?;
    out.write_all(&document)?;
    if let Ok(checked) = &findings {
        out.write_all(&checked.component)?;
    }
    out.flush()
}

/// Check `file` in a child of `runner`.
///
/// # Errors
/// [`LoadError::Refused`] says what is wrong with the file and how to mend it. The others say how
/// the child ended.
pub async fn check_in_child(
    runner: &ChildRunner,
    limits: ChildLimits,
    file: Bytes,
) -> Result<CheckedComponent, LoadError> {
    let job = Job {
        job: CHECK_JOB,
        subject: format!("{} bytes", file.len()),
        document: Vec::new(),
        file,
        output: Output::Returned,
        limits,
    };
    let answer = runner.run(job).await?;
    let (findings, component) = parts_of(&answer).map_err(ChildError::Io)?;
    let mut checked = findings.map_err(LoadError::Refused)?;
    checked.component = component.to_vec();
    Ok(checked)
}

/// The parts of an answer.
fn parts_of(answer: &[u8]) -> io::Result<(Findings, &[u8])> {
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let (len, rest) = answer.split_first_chunk().ok_or_else(short)?;
    let len = usize::try_from(u64::from_le_bytes(*len)).map_err(io::Error::other)?;
    let (document, component) = rest.split_at_checked(len).ok_or_else(short)?;
    Ok((serde_json::from_slice(document)?, component))
}
