//! Loading the plugins, assets and models that the desired state names. `plugins` loads plugins,
//! `assets` loads assets. `models` loads models, after a child process has loaded them once
//! (`prove`). `at_hand` holds all of them for a change; `progress` tells how far a start has come.
//!
//! Loading is slow, so it is done before the control plane's lock is taken. Refuses to know changes
//! and the log.
//!
//! Invariants:
//! - a plugin, an asset or a model is loaded once for all callers that ask at the same time;
//! - only a few are loaded side by side.

pub(crate) mod assets;
pub(crate) mod at_hand;
pub(crate) mod blob;
pub(crate) mod error;
pub(crate) mod loader;
pub(crate) mod models;
pub(crate) mod paths;
pub(crate) mod plugins;
pub(crate) mod progress;
pub(crate) mod prove;
pub(crate) mod slot;
