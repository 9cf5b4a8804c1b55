//! Clients of the systems that plugins may ask. Today these are stores of values by key, in Redis
//! or what speaks its protocol. The only crate that names `redis`.
//!
//! In reading order: [`Buckets`] are the stores that an operator has bound, [`RedisUrl`],
//! [`Prefix`] and [`BucketConfig`] say how; `server` has the links to one server, one for each
//! tenant, and `link` the connection of one; `breaker` keeps calls from a server that does not
//! answer; `answers` reads what it answers; `thread` runs all of this. Refuses to know plugins, and
//! which tenant may use what: that is decided before a call comes here.
//!
//! Invariants:
//! - no call waits longer than its bucket's timeout, nor after its request's deadline;
//! - no answer of a server, however wrong, is more than an error of the calls that wait for it;
//! - a tenant waits for no other tenant's calls, and its failures pause only its own;
//! - no text for plugins and no line of the log has a password or, in texts, an address.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod answers;
mod breaker;
mod buckets;
mod link;
mod password;
mod prefix;
mod redis_url;
mod server;
mod thread;

pub use buckets::{BucketConfig, Buckets, BucketsError};
pub use password::Password;
pub use prefix::{Prefix, PrefixError};
pub use redis_url::{RedisUrl, RedisUrlError};
