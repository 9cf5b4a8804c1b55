//! Hostile bytes, made by code: pictures, protocol messages, assets, plugins and models that cost
//! far more than their size suggests. `plugins/hostile` has the hostile guests.

pub mod assets;
pub mod messages;
pub mod models;
pub mod pictures;
pub mod plugins;

mod bits;
mod protobuf;
