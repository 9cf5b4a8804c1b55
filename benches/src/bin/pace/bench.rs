//! What all cases share.

use std::path::Path;

use tokio::runtime::Runtime;

/// What is measured, and the wish of the caller.
pub(crate) struct Bench<'a> {
    pub(crate) runtime: Runtime,
    pub(crate) gristmill: &'a Path,
    pub(crate) components: &'a Path,
    /// An earlier build, to compare with.
    pub(crate) before: Option<&'a Path>,
    pub(crate) wanted: &'a [String],
}

impl Bench<'_> {
    pub(crate) fn wants(&self, case: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|wanted| case.starts_with(wanted))
    }
}
