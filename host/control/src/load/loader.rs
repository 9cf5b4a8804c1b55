//! The loaders of plugins and models, and their progress.

use crate::desired::Desired;
use crate::load::models::Models;
use crate::load::plugins::Plugins;
use crate::load::progress::Progress;

/// Loads what releases name.
pub(crate) struct Loader {
    pub(crate) plugins: Plugins,
    pub(crate) models: Models,
    pub(crate) progress: Progress,
}

impl Loader {
    /// Forget plugins and models that `desired` does not name. Requests under way keep what they
    /// hold.
    pub(crate) fn retain(&self, desired: &Desired) {
        self.plugins.retain(desired);
        self.models.retain(desired);
    }
}
