//! Reading and deleting the things that have documents, in the ways that all of them share.

use gristmill_state::{Change, Current, Subject};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::query::{CASCADE, flag, none};
use crate::answer::{AdminAnswer, Outcome};
use crate::receive::Received;
use crate::state::AdminState;

/// The document of an uploaded file, with its length.
#[derive(Serialize)]
struct FileDocument {
    #[serde(flatten)]
    document: Value,
    #[serde(flatten)]
    length: FileLength,
}

/// The length of an uploaded file.
#[derive(Serialize, ToSchema)]
pub(super) struct FileLength {
    /// The bytes of its file, if the store has it.
    #[schema(required)]
    bytes: Option<u64>,
}

/// Answer with the document of a thing, in the form in which it can be put again.
pub(super) fn get(state: &AdminState, subject: &Subject, received: &Received<'_>) -> Outcome {
    none(received.query)?;
    let Current { document, tag, .. } = state.control.serving().current(subject)?;
    AdminAnswer::tagged(&document, tag)
}

/// Answer with what is known of an uploaded file.
pub(super) async fn get_file(
    state: &AdminState,
    subject: &Subject,
    received: &Received<'_>,
) -> Outcome {
    none(received.query)?;
    let Current { document, tag, file } = state.control.serving().current(subject)?;
    let Some(digest) = file else { return AdminAnswer::tagged(&document, tag) };
    // The length follows from the digest, which the tag covers.
    let length = FileLength { bytes: state.control.file_bytes(digest).await };
    AdminAnswer::tagged(&FileDocument { document, length }, tag)
}

/// Make `change`, which deletes something. With `?cascade=true`, its users are deleted, too.
pub(super) async fn delete(state: &AdminState, change: Change, received: Received<'_>) -> Outcome {
    let cascade = flag(CASCADE, received.query)?;
    let published = state.control.delete(change, cascade, received.options).await?;
    AdminAnswer::released(published, None)
}
