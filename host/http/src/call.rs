//! A request as the edges over HTTP get it.

use gristmill_core::Receipt;
use gristmill_snapshot::Snapshot;
use http::request::Parts;
use hyper::body::Incoming;

/// A request over HTTP.
pub(crate) struct Call<'a> {
    /// The snapshot that serves it, from its first look-up to its answer.
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) head: &'a Parts,
    pub(crate) body: &'a mut Incoming,
    /// The request's id.
    pub(crate) id: &'a str,
    /// Its bytes, rows and times are noted here.
    pub(crate) receipt: &'a mut Receipt,
}
