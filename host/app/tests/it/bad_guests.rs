//! Guests that break the canonical ABI or run into a limit: each ends as an error of its own call,
//! and other tenants are served.
//!
//! Faults that a plugin of a toolchain can have are in `bad_plugins`; these guests are assembled by
//! hand ([`modules`]). `run` uploads and calls them, `changes` are guests that differ from an
//! honest one in one place, `deeds` are those that differ in more.
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
