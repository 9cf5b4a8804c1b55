//! What requests are charged to, by its names.

use crate::Name;

/// The names of what a request is charged to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkNames<'a> {
    /// The tenant.
    pub tenant: Option<&'a Name>,
    /// The pipeline, if it is one.
    pub pipeline: Option<&'a Name>,
    /// The model of the pipeline, or the one that was called itself.
    pub model: Option<&'a Name>,
}

/// Something that requests are charged to.
pub trait Named: Send + Sync {
    /// The tenant, the pipeline and the model of the requests, if it knows them.
    fn names(&self) -> SinkNames<'_> {
        SinkNames::default()
    }
}
