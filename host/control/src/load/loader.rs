//! The loaders of plugins and models, and their progress.

use crate::load::models::Models;
use crate::load::plugins::Plugins;
use crate::load::progress::Progress;

/// Loads what releases name.
pub(crate) struct Loader {
    pub(crate) plugins: Plugins,
    pub(crate) models: Models,
    pub(crate) progress: Progress,
}
