//! The parts of a request that the edges over HTTP get.

use gristmill_snapshot::Snapshot;
use http::request::Parts;

/// A request, apart from its body.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The snapshot that serves it, from its first look-up to its answer.
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) head: &'a Parts,
    /// The request's id.
    pub(crate) id: &'a str,
}
