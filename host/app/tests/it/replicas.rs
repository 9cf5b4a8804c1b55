//! Servers that share a store.

mod following;
mod store_faults;
