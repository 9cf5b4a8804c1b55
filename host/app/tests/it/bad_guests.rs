//! Guests that break the canonical ABI or run into a limit: each ends as an error of its own call,
//! and other tenants are served.
//!
//! What a toolchain's plugin can do wrong is in `bad_plugins`; these are put together by hand
//! ([`modules`]). `run` does what each test needs, `changes` are guests that differ from an honest
//! one in one place, `deeds` those that differ in more.
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
