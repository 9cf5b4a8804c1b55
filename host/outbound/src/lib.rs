//! The stores of values by key that plugins may ask: in Redis or what speaks its protocol, and in
//! files of this server. The only crate that names `redis` and `redb`.
//!
//! In reading order: [`Buckets`] are the stores that an operator has bound, [`RedisUrl`],
//! [`Prefix`] and [`BucketConfig`] say how; `embedded` has the files. Of Redis, `server` has the
//! links to one server, one for each tenant and one for the operator, and `link` the connection of
//! one; `endpoint` makes it, and `stream` bounds what it reads at a time; `breaker` keeps calls
//! from a server that does not answer; `commands` is what is sent and `answers` reads what comes
//! back; `thread` runs all of this. Refuses to know plugins, and which tenant may use what: that is
//! decided before a call comes here.
//!
//! Invariants:
//! - no call of a plugin waits longer than its bucket's timeout, and none after its request's
//!   deadline;
//! - no answer of a server, however wrong, is more than an error of the calls that wait for it;
//! - a tenant waits for no other tenant's calls, and its failures pause only its own;
//! - no text for plugins and no line of the log has a password or, in texts, an address.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod answers;
mod breaker;
mod buckets;
mod commands;
mod embedded;
mod endpoint;
mod link;
mod password;
mod prefix;
mod redis_url;
mod server;
mod stream;
mod thread;

pub use buckets::{BucketConfig, Buckets, BucketsError, Place};
pub use password::Password;
pub use prefix::{Prefix, PrefixError};
pub use redis_url::{RedisUrl, RedisUrlError};
