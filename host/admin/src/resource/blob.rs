//! `GET`, `PUT` and `PATCH /admin/v1/blobs/{digest}`: files that are uploaded before the release
//! that names them, at once or in parts.
//!
//! The headers of parts are those of the IETF's draft on resumable uploads: `Upload-Offset` and
//! `Upload-Complete`.

use async_trait::async_trait;
use gristmill_control::{BlobState, Blobs, ControlError};
use gristmill_core::{Digest, ErrorCode};
use gristmill_transport::{Allowed, Problem};
use http::Method;
use serde_json::json;
use tokio::task::JoinError;

use super::Resource;
use super::query::{invalid, none};
use crate::answer::{Answer, Noted, Outcome};
use crate::receive::{Received, UploadPart};
use crate::state::State;

pub(crate) struct Blob(String);

impl Blob {
    pub(crate) fn new(digest: &str) -> Self {
        Self(digest.into())
    }

    fn digest(&self) -> Result<Digest, Problem> {
        let wrong = || {
            let shown = &self.0[..self.0.floor_char_boundary(100)];
            invalid(format!("digest is {shown:?}: must be sha256: and 64 digits 0-9, a-f"))
        };
        self.0.parse().map_err(|_| wrong())
    }
}

#[async_trait]
impl Resource for Blob {
    fn allowed(&self) -> Allowed {
        Allowed::GetPutPatch
    }

    async fn answer(&self, state: &State, method: &Method, received: Received<'_>) -> Outcome {
        none(received.query)?;
        let digest = self.digest()?;
        let blobs = state.control.blobs();
        match *method {
            Method::PUT => {
                let file = received.upload(state, None).await?;
                answer(digest, blobs.keep(digest, file).await?)
            }
            Method::PATCH => {
                let (offset, is_last) = (received.upload_offset()?, received.upload_complete()?);
                let part = received.upload_part(&state.limits);
                // It goes on if the client leaves, so that the parts before this one are kept.
                let taking = tokio::spawn(take(blobs.clone(), digest, offset, is_last, part));
                let stopped =
                    |error: JoinError| Problem::new(ErrorCode::Internal, error.to_string());
                answer(digest, taking.await.map_err(stopped)??)
            }
            _ => match blobs.state(digest).await? {
                Some(found) => answer(digest, found),
                None => {
                    let name = digest.to_string();
                    Err(ControlError::NotFound { what: "blob", name }.into())
                }
            },
        }
    }
}

/// Receive a part.
async fn take(
    blobs: std::sync::Arc<Blobs>,
    digest: Digest,
    offset: u64,
    is_last: bool,
    body: UploadPart,
) -> Result<BlobState, Problem> {
    let mut part = match blobs.part(digest, offset).await {
        Ok(part) => part,
        Err(error) => {
            body.drop_some().await;
            return Err(error.into());
        }
    };
    match body.write(&mut part).await {
        Ok(()) => Ok(part.end(is_last).await?),
        Err(problem) => {
            part.cancel().await;
            Err(problem)
        }
    }
}

fn answer(digest: Digest, state: BlobState) -> Outcome {
    let BlobState { bytes, is_complete } = state;
    let document = json!({ "digest": digest, "bytes": bytes, "complete": is_complete });
    let noted = Noted { release: None, digest: Some(digest) };
    Answer::changed(&document, None, noted)
}
