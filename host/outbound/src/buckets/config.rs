//! How buckets are bound, and why they cannot be.

use std::time::Duration;

use gristmill_core::Name;

use crate::password::Password;
use crate::prefix::Prefix;
use crate::redis_url::RedisUrl;

/// How a bucket is bound.
#[derive(Clone, Debug)]
pub struct BucketConfig {
    /// Where its values are.
    pub place: Place,
    /// The beginning of all keys.
    pub prefix: Prefix,
    /// The time for a call.
    pub timeout: Duration,
}

/// Where the values of a bucket are.
#[derive(Clone, Debug)]
pub enum Place {
    /// On a server that speaks Redis's protocol.
    Redis {
        /// The server.
        url: RedisUrl,
        /// Its password, if it needs one.
        password: Option<Password>,
    },
    /// In a file of this server.
    Embedded {
        /// Maximum bytes of the values of each prefix: of each tenant, or of all where they share
        /// keys.
        max_bytes: u64,
    },
}

/// An error of setting up the stores.
#[derive(Debug, thiserror::Error)]
pub enum BucketsError {
    /// The client refuses the URL of this bucket.
    #[error("the client of Redis refuses stores.{0}.redis")]
    Refused(Name),
    /// This bucket needs TLS, but the system trusts no authority.
    #[error(
        "stores.{0}.redis is a URL with rediss://, but the operating system has no certificates of \
         authorities: install them (the package ca-certificates), or name a file of them in the \
         variable SSL_CERT_FILE"
    )]
    NoAuthorities(Name),
    /// A thread of stores cannot be started.
    #[error("cannot start a thread of stores")]
    Thread(#[source] std::io::Error),
}
