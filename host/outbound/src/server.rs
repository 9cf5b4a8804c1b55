//! One server, and the links to it: one for each tenant that asks it, and one for the operator.
//!
//! Calls of a tenant with large answers, or with deadlines that are too short for any answer, hold
//! up and pause only its own further calls. Those of the operator hold up no tenant's.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::Name;
use parking_lot::Mutex;

use crate::endpoint::{Endpoint, EndpointError};
use crate::link::Link;
use crate::password::Password;
use crate::redis_url::RedisUrl;

/// How long a link stays that nobody uses.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(60);

/// A server.
pub(crate) struct Server {
    endpoint: Arc<Endpoint>,
    /// By the names of the tenants; under none that of the operator.
    links: Mutex<HashMap<Option<Name>, Arc<Link>>>,
}

impl Server {
    /// A server, to which no connection is made yet.
    ///
    /// # Errors
    /// [`EndpointError`]
    pub(crate) fn new(url: &RedisUrl, password: Option<&Password>) -> Result<Self, EndpointError> {
        Ok(Self::of(Endpoint::new(url, password)?))
    }

    /// The server there, to which no connection is made yet.
    pub(crate) fn of(endpoint: Endpoint) -> Self {
        Self { endpoint: Arc::new(endpoint), links: Mutex::default() }
    }

    /// Where it is.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The tenant's link, or the operator's.
    pub(crate) fn link(&self, owner: Option<Name>) -> Arc<Link> {
        let mut links = self.links.lock();
        let link = links
            .entry(owner)
            .or_insert_with_key(|owner| Arc::new(Link::new(self.endpoint.clone(), owner.clone())));
        link.clone()
    }

    /// Drop the links that nobody uses, nor did for a while.
    pub(crate) fn drop_idle(&self, now: Instant) {
        let is_kept = |link: &Arc<Link>| {
            Arc::strong_count(link) > 1
                || now.saturating_duration_since(link.last_used()) < IDLE_MAX
        };
        self.links.lock().retain(|_, link| is_kept(link));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_one_link_until_it_is_idle() {
        let server = Server::new(&"redis://127.0.0.1:1".parse().unwrap(), None).unwrap();
        let acme = || Some("acme".parse::<Name>().unwrap());
        let link = server.link(acme());
        assert!(Arc::ptr_eq(&link, &server.link(acme())));
        assert!(!Arc::ptr_eq(&link, &server.link(None)), "the operator has a link of its own");
        server.drop_idle(Instant::now());
        assert_eq!(server.links.lock().len(), 2);
        server.drop_idle(Instant::now() + IDLE_MAX);
        // A call uses it.
        assert!(Arc::ptr_eq(&link, &server.link(acme())));
        assert_eq!(server.links.lock().len(), 1);
        drop(link);
        server.drop_idle(Instant::now() + IDLE_MAX);
        assert_eq!(server.links.lock().len(), 0);
    }
}
