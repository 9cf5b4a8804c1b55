//! `GET`, `PUT`, `PATCH` and `DELETE /admin/v1/blobs/{digest}`: files that are uploaded before the
//! release that names them, at once or in parts.
//!
//! The headers of parts are those of the IETF's draft on resumable uploads: `Upload-Offset` and
//! `Upload-Complete`.

use std::sync::Arc;

use gristmill_control::{BeginPart, BlobState, Blobs, ControlError, Holder, joined};
use gristmill_core::{Digest, ErrorCode};
use gristmill_state::{DigestText, StateError};
use gristmill_transport::{Allowed, Problem};
use http::Method;
use serde::Serialize;
use utoipa::ToSchema;

use super::query::{invalid, none};
use super::{Answering, Asked, Resource, is_read};
use crate::answer::{AdminAnswer, Noted, Outcome};
use crate::operation::{Operation, integer, text};
use crate::permission::Permission;
use crate::receive::UploadPart;

pub(crate) struct Blob(String);

/// An uploaded file, or the parts of it that have arrived.
#[derive(Serialize, ToSchema)]
#[schema(as = Blob)]
struct BlobDocument {
    #[schema(value_type = DigestText)]
    digest: Digest,
    /// The bytes that have arrived.
    bytes: u64,
    /// Whether it is the whole file.
    complete: bool,
}

/// A file that is dropped.
#[derive(Serialize, ToSchema)]
#[schema(as = DroppedBlob)]
struct DroppedDocument {
    #[schema(value_type = DigestText)]
    digest: Digest,
}

impl Blob {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        const PATH: &str = "blobs/{digest}";
        let refused =
            [ErrorCode::Conflict, ErrorCode::Unprocessable, ErrorCode::InsufficientStorage];
        let is_last = text().enum_values(Some(["?0", "?1"]));
        vec![
            Operation::get(PATH, "Look how much of a file has arrived")
                .answers::<BlobDocument>()
                .finds(),
            Operation::put(PATH, "Upload a file before the release that names it")
                .about("It waits for its release for an hour.")
                .takes_bytes()
                .answers::<BlobDocument>()
                .problems(&refused),
            Operation::patch(PATH, "Upload a part of a file")
                .header("Upload-Offset", integer(0, None), "The bytes before this part")
                .header("Upload-Complete", is_last, "`?1` for the last part, `?0` for others")
                .takes_bytes()
                .answers::<BlobDocument>()
                .problems(&refused),
            Operation::delete(PATH, "Drop a file that waits for a release")
                .answers::<DroppedDocument>()
                .finds(),
        ]
    }
}

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

impl Resource for Blob {
    fn allowed(&self) -> Allowed {
        Allowed::GetPutPatchDelete
    }

    fn permission(&self, method: &Method) -> Permission<'_> {
        match is_read(method) {
            true => Permission::SeeFile,
            false => Permission::Upload,
        }
    }

    fn answer<'a>(&'a self, Asked { state, method, received }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let digest = none(received.query).and_then(|()| self.digest());
            let blobs = state.control.blobs();
            let token_scope = received.caller.token_scope();
            let holder = |digest| state.control.holder(&token_scope, digest);
            match *method {
                Method::PUT => {
                    let file = received.upload(state, None).await?;
                    let digest = digest?;
                    answer(digest, blobs.keep(&holder(digest), digest, file).await?)
                }
                Method::PATCH => {
                    let place = digest.and_then(|digest| {
                        Ok((digest, received.upload_offset()?, received.upload_complete()?))
                    });
                    let body = received.upload_part(&state.limits);
                    let (digest, offset, is_last) = match place {
                        Ok(place) => place,
                        Err(problem) => {
                            body.drop_some().await;
                            return Err(problem);
                        }
                    };
                    // It goes on if the client leaves, so that the parts before this one are kept.
                    let taking = tokio::spawn(take(
                        blobs.clone(),
                        holder(digest),
                        PartPosition { digest, offset, is_last },
                        body,
                    ));
                    let taken = joined("received a part of a file", taking).await;
                    answer(digest, taken.map_err(ControlError::logged)??)
                }
                Method::DELETE => {
                    let digest = digest?;
                    match blobs.forget(&holder(digest), digest) {
                        true => AdminAnswer::of(&DroppedDocument { digest }),
                        false => Err(not_waiting(digest)),
                    }
                }
                _ => {
                    let digest = digest?;
                    match blobs.state(&holder(digest), digest).await? {
                        Some(state) => answer(digest, state),
                        None => Err(not_waiting(digest)),
                    }
                }
            }
        })
    }
}

fn not_waiting(digest: Digest) -> Problem {
    StateError::NotFound { what: "blob", name: digest.to_string() }.into()
}

/// The position of a part in its file.
struct PartPosition {
    digest: Digest,
    offset: u64,
    is_last: bool,
}

/// Receive a part.
async fn take(
    blobs: Arc<Blobs>,
    holder: Holder,
    PartPosition { digest, offset, is_last }: PartPosition,
    body: UploadPart,
) -> Result<BlobState, Problem> {
    let mut part = match blobs.part(&holder, digest, offset).await {
        Ok(BeginPart::Receive(part)) => part,
        Ok(BeginPart::Complete(state)) => {
            body.drop_some().await;
            return Ok(state);
        }
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
    let document = BlobDocument { digest, bytes, complete: is_complete };
    let noted = Noted { release: None, digest: Some(digest) };
    AdminAnswer::changed(&document, None, noted)
}
