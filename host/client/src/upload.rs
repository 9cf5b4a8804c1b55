//! Uploading a file that a release will name: in parts, going on where a cut connection ended.
//!
//! The server says how much of the file it has, so nothing is sent twice, also if an earlier run of
//! the program was ended. A failure is tried again only once the server has answered: a wrong
//! address or token is reported at once. It ends when a few tries in a row brought no progress.

use std::io::{self, Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, StatusCode};
use serde_json::Value;
use tokio::time::sleep;

use crate::admin::{AdminClient, AdminError, url};
use crate::error::ClientError;
use crate::part_size::PartSize;

/// The tries in a row without progress, besides the first.
const TRIES_MAX: u32 = 8;

/// The pause before the first of them. It doubles from try to try, up to `PAUSE_MAX`.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(4);

/// The longest time for one part. The server itself gives up earlier if nothing arrives.
const PART_TIMEOUT: Duration = Duration::from_secs(120);

/// A file by its content.
#[derive(Clone, Copy, Debug)]
pub struct Blob<'a> {
    /// Its digest, as the admin API writes it.
    pub digest: &'a str,
    /// Its length.
    pub bytes: u64,
}

/// Why a file was not uploaded.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// A call failed.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The file cannot be read, or has become shorter.
    #[error("the file cannot be read")]
    Read(#[source] io::Error),
}

impl From<ClientError> for UploadError {
    fn from(error: ClientError) -> Self {
        Self::Admin(error.into())
    }
}

/// What the server has of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UploadState {
    Whole,
    /// So many bytes.
    Part(u64),
}

/// An upload under way.
struct Upload<'a, F> {
    admin: AdminClient,
    file: &'a mut F,
    blob: Blob<'a>,
    size: PartSize,
    /// Whether parts that were there before this upload began are part of it. They may have been
    /// sent with a wrong content.
    resumes: bool,
    /// Whether a part was sent.
    has_sent: bool,
}

impl AdminClient {
    /// Uploads `file`, unless the server has it. After each part, `progress` is told how many of
    /// its bytes the server has. Returns whether anything was sent. The file is read in place, so
    /// the call blocks its thread for short times.
    ///
    /// # Errors
    /// [`UploadError`] after the tries that are worth it.
    pub async fn upload(
        &self,
        file: &mut (impl Read + Seek),
        blob: Blob<'_>,
        progress: impl FnMut(u64),
    ) -> Result<bool, UploadError> {
        let admin = Self::new(self.client().clone().with_answer_timeout(PART_TIMEOUT));
        let size = PartSize::first();
        let mut upload = Upload { admin, file, blob, size, resumes: false, has_sent: false };
        upload.run(progress).await
    }
}

impl<F: Read + Seek> Upload<'_, F> {
    async fn run(&mut self, mut progress: impl FnMut(u64)) -> Result<bool, UploadError> {
        let mut is_answered = false;
        let mut failures = 0;
        // The bytes that have arrived. None if the server has to be asked.
        let mut arrived = None;
        // A part that the server refused, and the bytes before it.
        let mut refused: Option<(u64, UploadError)> = None;
        loop {
            let outcome = match arrived {
                None => self.ask().await,
                Some(at) => self.send_part(at).await,
            };
            match outcome {
                Ok(UploadState::Whole) => return Ok(self.has_sent),
                Ok(UploadState::Part(bytes)) => {
                    if let Some((_, error)) = refused.take_if(|(at, _)| *at == bytes) {
                        return Err(error);
                    }
                    self.resumes |= !is_answered && bytes > 0;
                    is_answered = true;
                    if arrived.is_some() {
                        failures = 0;
                    }
                    arrived = Some(bytes);
                    progress(bytes);
                }
                Err(error) if self.has_wrong_parts(&error) => {
                    self.resumes = false;
                    arrived = None;
                }
                // Another upload of the same file may have moved the place; otherwise it stands.
                Err(error) if failures < TRIES_MAX && is_conflict(&error) && arrived.is_some() => {
                    failures += 1;
                    refused = arrived.take().map(|at| (at, error));
                }
                Err(error) if is_answered && failures < TRIES_MAX && may_pass(&error) => {
                    sleep((PAUSE * 2_u32.pow(failures)).min(PAUSE_MAX)).await;
                    failures += 1;
                    self.size = self.size.after_failure();
                    arrived = None;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Ask the server what it has.
    async fn ask(&self) -> Result<UploadState, UploadError> {
        match self.admin.get(&self.path()).await {
            Ok(document) => {
                let state = state_of(&document);
                if matches!(state, UploadState::Part(bytes) if bytes > self.blob.bytes) {
                    // Parts of another file under this name.
                    let dropped = Request::delete(url(&self.path())).body(Bytes::new());
                    self.admin.call(dropped).await?;
                    return Ok(UploadState::Part(0));
                }
                Ok(state)
            }
            Err(AdminError::Refused { status: StatusCode::NOT_FOUND, .. }) => {
                Ok(UploadState::Part(0))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Send the part that follows `offset` bytes.
    async fn send_part(&mut self, offset: u64) -> Result<UploadState, UploadError> {
        let rest = self.blob.bytes.saturating_sub(offset);
        let bytes = rest.min(self.size.bytes() as u64);
        let mut part = vec![0; usize::try_from(bytes).unwrap_or(self.size.bytes())];
        let read = self.file.seek(SeekFrom::Start(offset));
        read.and_then(|_| self.file.read_exact(&mut part)).map_err(UploadError::Read)?;
        let request = Request::patch(url(&self.path()))
            .header("upload-offset", offset)
            .header("upload-complete", if bytes == rest { "?1" } else { "?0" })
            .body(part.into());
        let began = Instant::now();
        let answered = self.admin.call(request).await?;
        self.has_sent = true;
        self.size = self.size.after(began.elapsed());
        Ok(state_of(&answered))
    }

    /// Whether the server found that the content is not that of the digest, although this upload
    /// only continued what was there. The server has dropped it then.
    fn has_wrong_parts(&self, error: &UploadError) -> bool {
        let is_refused = matches!(
            error,
            UploadError::Admin(AdminError::Refused {
                status: StatusCode::UNPROCESSABLE_ENTITY,
                ..
            })
        );
        self.resumes && is_refused
    }

    fn path(&self) -> String {
        format!("blobs/{}", self.blob.digest)
    }
}

fn state_of(document: &Value) -> UploadState {
    match document["complete"].as_bool() {
        Some(true) => UploadState::Whole,
        _ => UploadState::Part(document["bytes"].as_u64().unwrap_or_default()),
    }
}

fn is_conflict(error: &UploadError) -> bool {
    matches!(error, UploadError::Admin(AdminError::Refused { status: StatusCode::CONFLICT, .. }))
}

/// Whether the same call may succeed a moment later: the connection was cut; or the server is not
/// ready, or has not noticed yet that the connection of the part before was cut.
fn may_pass(error: &UploadError) -> bool {
    match error {
        UploadError::Admin(AdminError::NoAnswer(error)) => !matches!(
            error,
            ClientError::AnswerTooLong { .. } | ClientError::Request(_) | ClientError::Runtime(_)
        ),
        UploadError::Admin(AdminError::Refused { status, .. }) => [
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::CONFLICT,
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::SERVICE_UNAVAILABLE,
        ]
        .contains(status),
        UploadError::Admin(AdminError::Foreign { status, .. }) => status.is_server_error(),
        UploadError::Read(_) => false,
    }
}
