//! All that loads: plugins, models, and how far that is.

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
    /// Let go of what `desired` no longer names; requests under way keep what they hold.
    pub(crate) fn retain(&self, desired: &Desired) {
        self.plugins.retain(desired);
        self.models.retain(desired);
    }
}
