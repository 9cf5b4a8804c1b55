//! Releases: how they are made, tried, kept, and taken back.

mod candidates;
mod captured;
mod durability;
mod kept;
mod log;
mod many_changes;
mod power;
mod samples;
mod swap;
mod versions;
