//! Guests that break the canonical ABI or run into a limit: each ends as an error of its own call,
//! and other tenants are served.
//!
//! `bad_plugins` has the faults of plugins that a toolchain can make. These guests are assembled by
//! hand ([`modules`]). `run` uploads and calls them. Guests of `changes` differ from an honest one
//! in one place, guests of `deeds` in more.
//!
//! [`modules`]: crate::support::modules

mod run;

#[macro_use]
mod changes;
mod deeds;

mod allocators;
mod answers;
mod calls;
mod ends;
mod isolation;
