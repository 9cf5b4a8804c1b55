//! Models: their backends, their batches, and those that misbehave.

mod backends;
mod bad_models;
mod batching;
mod exported;
mod mixed_rows;
mod names;
mod padding;
mod warm_up;
