//! How the stores of a server are bound.

use std::time::Duration;

use gristmill_core::Name;

use crate::password::Password;
use crate::prefix::Prefix;
use crate::redis_url::RedisUrl;

/// How a bucket is bound.
#[derive(Clone, Debug)]
pub struct BucketConfig {
    /// Where its values are.
    pub kind: BucketKind,
    /// The beginning of all keys.
    pub prefix: Prefix,
    /// The time for a call.
    pub timeout: Duration,
    /// What this server keeps of it.
    pub cache: Option<CacheConfig>,
}

/// What a server keeps of a bucket's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// How long it keeps a value.
    pub ttl: Duration,
    /// Maximum bytes of all of them.
    pub max_bytes: usize,
}

/// Where the values of a bucket are.
#[derive(Clone, Debug)]
pub enum BucketKind {
    /// In Redis, or what speaks its protocol.
    Redis(RedisConfig),
    /// In a file of this server.
    Embedded {
        /// Maximum bytes of the values of each prefix: of each tenant, or of all where they share
        /// keys.
        max_bytes: u64,
    },
}

/// How Redis is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RedisConfig {
    /// The server, or some of the servers of a cluster.
    pub urls: Vec<RedisUrl>,
    /// Whether they belong to a cluster.
    pub is_cluster: bool,
    /// The password of all, if they need one.
    pub password: Option<Password>,
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
