//! Servers that share a store.

mod following;
mod scaling;
mod store_faults;
