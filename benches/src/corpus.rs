//! Hostile bytes, made by code: pictures, protocol messages, uploads and models that are small or
//! valid and cost far more than they say. `plugins/hostile` has the guests.

pub mod messages;
pub mod models;
pub mod pictures;
pub mod plugins;

mod bits;
mod protobuf;
