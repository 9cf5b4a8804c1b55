//! The loaders of plugins, assets and models, and their progress.

use crate::load::assets::Assets;
use crate::load::models::Models;
use crate::load::plugins::Plugins;
use crate::load::progress::Progress;

/// Loads what releases name.
pub(crate) struct Loader {
    pub(crate) plugins: Plugins,
    pub(crate) assets: Assets,
    pub(crate) models: Models,
    pub(crate) progress: Progress,
}
