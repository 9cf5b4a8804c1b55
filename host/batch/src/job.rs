//! A request in a batch.

use gristmill_core::{Follow, NamedTensor};

use crate::ticket::Reply;

/// The inputs of a request, or of a part of one.
pub(crate) struct Job {
    pub(crate) inputs: Vec<NamedTensor>,
    /// Inputs that have defaults. A request that gives some runs alone.
    pub(crate) optional: Vec<NamedTensor>,
    pub(crate) reply: Reply,
    /// Follows the request into its batches.
    pub(crate) follow: Follow,
}
