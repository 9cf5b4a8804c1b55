//! What all cases share.

use std::path::Path;

use serde_json::Value;
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

    /// Print the figures of a case.
    pub(crate) fn told(&self, case: String, mut figures: Value) {
        figures["what"] = case.into();
        println!("{figures}");
    }
}
