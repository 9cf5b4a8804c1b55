//! Loading what the desired state names: plugins by `plugins`, models by `models` after `prove` has
//! had a child load them. `at_hand` holds both for a change; `progress` says how far a start is.
//!
//! Loading is slow, so it is done before the control plane's lock is taken. Refuses to know changes
//! and the log.
//!
//! Invariants:
//! - a plugin and a model are loaded once for all who ask at the same time;
//! - few are loaded side by side, whatever the desired state names.

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
