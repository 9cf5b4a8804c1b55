//! What plugins may ask: stores of values by key, in Redis or what speaks its protocol and in files
//! of this server, and services over HTTP. The only crate that names `redis` and `redb`.
//!
//! In reading order: [`Buckets`] are the stores that an operator has bound; `config`, [`RedisUrl`]
//! and [`Prefix`] say how. `embedded` has the files, and `cache` what is kept of Redis's values. Of
//! Redis, `remote` is one server or a `cluster` of them: `server` has the links to one, one for
//! each tenant and one for the operator, and `link` the connection of one; `endpoint` makes it, and
//! `stream` bounds what it reads at a time; `breaker` keeps calls from a server that does not
//! answer; `commands` is what is sent and `answers` reads what comes back; `thread` runs all of
//! this. [`HttpClient`] sends requests to services, on a thread of their
//! own; `addresses` says to which addresses. Refuses to know plugins, and which tenant may use
//! what: that is decided before a call comes here.
//!
//! Invariants:
//! - no call of a plugin waits longer than its bucket's timeout, and none after its request's
//!   deadline;
//! - no answer of a server, however wrong, is more than an error of the calls that wait for it;
//! - a tenant waits for no other tenant's calls, and its failures pause only its own;
//! - a connection is made to the address that was checked, and serves one tenant and one place;
//! - no text for plugins and no line of the log has a password or, in texts, an address.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod addresses;
mod answers;
mod breaker;
mod buckets;
mod cache;
mod cluster;
mod commands;
mod config;
mod embedded;
mod endpoint;
mod http_client;
mod link;
mod password;
mod prefix;
mod redis_url;
mod remote;
mod server;
mod stream;
mod thread;
mod tls;

pub use buckets::Buckets;
pub use config::{BucketConfig, BucketKind, BucketsError, CacheConfig, RedisConfig};
pub use http_client::HttpClient;
pub use password::Password;
pub use prefix::{Prefix, PrefixError};
pub use redis_url::{RedisUrl, RedisUrlError};
