//! What a thread may take: its share of the processor ([`Share`]), and the memory that native
//! libraries allocate on it ([`NativeMemory`]).
//!
//! Refuses to know what the threads do. The two have no safe interface in Rust's libraries, so the
//! unsafe code for them is here.

mod memory;
mod share;

pub use memory::{NativeMemory, is_counted};
pub use share::Share;
