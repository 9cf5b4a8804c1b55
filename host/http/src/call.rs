//! What the edges over HTTP are given of a request.

use gristmill_snapshot::Snapshot;
use http::request::Parts;

/// A request, apart from its body.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// What serves it, from its first look-up to its answer.
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) head: &'a Parts,
    /// The request's id.
    pub(crate) id: &'a str,
}
