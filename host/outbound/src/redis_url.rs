//! The URL of a Redis server, without secrets.

use std::fmt;
use std::str::FromStr;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisResult, parse_redis_url};

/// The address of a server that speaks Redis's protocol: `redis://host:6379/0`, or `rediss://` with
/// TLS. A user's name may stand before the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RedisUrl(String);

/// A text that is not a [`RedisUrl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedisUrlError {
    /// Not a URL of Redis.
    #[error(
        "must be a URL such as redis://10.0.0.7:6379/0, or with rediss:// for TLS, without query and \
         fragment"
    )]
    Unknown,
    /// It has a password.
    #[error("must have no password: password_file names a file with it")]
    HasSecret,
}

impl FromStr for RedisUrl {
    type Err = RedisUrlError;

    fn from_str(text: &str) -> Result<Self, RedisUrlError> {
        let url = parse_redis_url(text).ok_or(RedisUrlError::Unknown)?;
        if url.password().is_some() {
            return Err(RedisUrlError::HasSecret);
        }
        let is_known = matches!(url.scheme(), "redis" | "rediss")
            && url.query().is_none()
            && url.fragment().is_none();
        let url = Self(text.to_owned());
        match is_known && url.connection_info().is_ok() {
            true => Ok(url),
            false => Err(RedisUrlError::Unknown),
        }
    }
}

impl RedisUrl {
    /// The server and the database, as `HOST:PORT/DATABASE`: where they differ, no keys are shared.
    pub fn database(&self) -> String {
        match self.connection_info() {
            Ok(info) => format!("{}/{}", info.addr(), info.redis_settings().db()).to_lowercase(),
            Err(_) => self.0.clone(),
        }
    }

    /// Whether it names the first database, the only one that a cluster has.
    pub fn is_first_database(&self) -> bool {
        self.connection_info().is_ok_and(|info| info.redis_settings().db() == 0)
    }

    /// Whether one server is reached as the other: by the same user, and both over TLS or none.
    pub fn is_reached_as(&self, other: &Self) -> bool {
        let way = |url: &Self| {
            let info = url.connection_info().ok()?;
            let is_tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
            Some((is_tls, info.redis_settings().username().map(str::to_owned)))
        };
        way(self) == way(other)
    }

    /// What the client needs to connect, without a password.
    pub(crate) fn connection_info(&self) -> RedisResult<ConnectionInfo> {
        self.0.as_str().into_connection_info()
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_server_and_no_secret() {
        for good in ["redis://10.0.0.7:6379/0", "rediss://cache.internal", "redis://app@host/3"] {
            assert_eq!(good.parse::<RedisUrl>().unwrap().to_string(), good);
        }
        for bad in [
            "",
            "host:6379",
            "http://host",
            "unix:///run/redis.sock",
            "redis://host/db",
            "redis://host?protocol=resp3",
            "rediss://host/#insecure",
        ] {
            assert_eq!(bad.parse::<RedisUrl>(), Err(RedisUrlError::Unknown), "{bad}");
        }
        for secret in ["redis://:word@host", "rediss://app:word@host/0"] {
            assert_eq!(secret.parse::<RedisUrl>(), Err(RedisUrlError::HasSecret));
        }
    }

    #[test]
    fn a_url_names_a_database() {
        let database = |url: &str| url.parse::<RedisUrl>().unwrap().database();
        assert_eq!(database("redis://app@Host"), "host:6379/0");
        assert_eq!(database("redis://host:7/3"), "host:7/3");
        let url = |url: &str| url.parse::<RedisUrl>().unwrap();
        assert!(url("redis://a").is_first_database() && !url("redis://a/1").is_first_database());
        assert!(url("redis://app@a").is_reached_as(&url("redis://app@b:7")));
        for other in ["redis://b", "rediss://app@b", "redis://other@b"] {
            assert!(!url("redis://app@a").is_reached_as(&url(other)), "{other}");
        }
    }
}
