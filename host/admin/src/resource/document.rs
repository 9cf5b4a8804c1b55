//! Reading and deleting the things that have documents, in the ways that all of them share.

use gristmill_control::{Change, Subject};

use super::query::{flag, none};
use crate::answer::{Answer, Outcome};
use crate::receive::Received;
use crate::state::State;

/// Answer with the document of a thing, in the form in which it can be put again.
pub(super) fn get(state: &State, subject: &Subject, received: &Received<'_>) -> Outcome {
    none(received.query)?;
    Answer::current(&state.control.serving().current(subject)?)
}

/// Answer with what is known of an uploaded file.
pub(super) async fn get_file(state: &State, subject: &Subject, received: &Received<'_>) -> Outcome {
    none(received.query)?;
    let mut current = state.control.serving().current(subject)?;
    // The length follows from the digest, which the tag covers.
    if let Some(digest) = current.file {
        current.document["bytes"] = state.control.file_bytes(digest).await.into();
    }
    Answer::current(&current)
}

/// Make `change`, which deletes something. With `?cascade=true`, its users are deleted, too.
pub(super) async fn delete(state: &State, change: Change, received: Received<'_>) -> Outcome {
    let cascade = flag("cascade", received.query)?;
    let published = state.control.delete(change, cascade, received.terms).await?;
    Answer::released(published, None)
}
