//! Values in Redis, on one server or in a cluster: what is asked for a call, which is made where it
//! is called, and how the answer is read.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use gristmill_sandbox::{KeyPage, StoreCall, Swap, Swapped, WantedValues};
use redis::{Pipeline, Value};

use crate::answers::{
    ANSWERS_APART, filled_values, is_number, is_removed, is_set, is_swapped, is_value,
    is_value_apart, key_page, number, removed, swapped, values, values_apart,
};
use crate::cluster::{Cluster, Cursor, PageTerms, Step, Terms};
use crate::commands;
use crate::config::RedisConfig;
use crate::endpoint::EndpointError;
use crate::link::{Commands, LinkError, Until};
use crate::server::Server;

/// One server, or a cluster.
#[derive(Clone)]
pub(crate) enum Remote {
    Server(Arc<Server>),
    Cluster(Arc<Cluster>),
}

/// What is asked, and how its answer is read.
pub(crate) struct Question<T> {
    sent: Sent,
    /// The keys that the commands change, with their prefix.
    pub(crate) changed: Vec<String>,
    /// Reads an answer. It gives none for one that cannot be.
    read: Box<dyn FnOnce(Vec<Value>) -> Option<T> + Send>,
}

/// To whom commands are sent.
enum Sent {
    Together(Arc<Server>, Pipeline),
    ByKey(Arc<Cluster>, Vec<Step>, AreRight),
}

/// What is asked for a page of keys with a prefix.
pub(crate) enum Listing {
    Server(Question<KeyPage>),
    Cluster(Arc<Cluster>, String, Option<Cursor>),
}

/// Whether these can be the answers about one key.
type AreRight = fn(&[Value]) -> bool;

impl Remote {
    /// What is reached like this. No connection is made yet.
    ///
    /// # Errors
    /// [`EndpointError`]
    pub(crate) fn new(config: &RedisConfig) -> Result<Self, EndpointError> {
        let RedisConfig { urls, is_cluster, password } = config;
        let password = password.as_ref();
        match urls.as_slice() {
            [url] if !is_cluster => Ok(Self::Server(Arc::new(Server::new(url, password)?))),
            urls => Ok(Self::Cluster(Arc::new(Cluster::new(urls, password)?))),
        }
    }

    /// Drop the links that nobody uses, nor did for a while.
    pub(crate) fn drop_idle(&self, now: Instant) {
        match self {
            Self::Server(server) => server.drop_idle(now),
            Self::Cluster(cluster) => cluster.drop_idle(now),
        }
    }

    /// The values of keys.
    pub(crate) fn get_many(
        &self,
        prefix: &str,
        wanted: WantedValues<'_>,
    ) -> Question<Vec<Option<Bytes>>> {
        type Read = fn(Vec<Value>, usize) -> Option<Vec<Option<Bytes>>>;
        let count = wanted.keys.len();
        let (sent, read): (_, Read) = match self {
            _ if wanted.none_if_empty => {
                (self.sent(commands::get_many(prefix, wanted), 1, is_value), filled_values)
            }
            Self::Server(server) => {
                (Sent::Together(server.clone(), commands::get_many(prefix, wanted)), values)
            }
            Self::Cluster(_) => {
                let pipeline = commands::get_apart(prefix, wanted);
                (self.sent(pipeline, ANSWERS_APART, is_value_apart), values_apart)
            }
        };
        let read = Box::new(move |answer| read(answer, count));
        Question { sent, changed: Vec::new(), read }
    }

    /// Set values.
    pub(crate) fn set(
        &self,
        prefix: &str,
        values: &[(&str, &[u8])],
        ttl_ms: Option<u64>,
    ) -> Question<()> {
        let count = values.len();
        let are_done = move |answer: Vec<Value>| {
            (answer.len() == count && answer.chunks(1).all(is_set)).then_some(())
        };
        let keys = values.iter().map(|(key, _)| format!("{prefix}{key}")).collect();
        let sent = self.sent(commands::set(prefix, values, ttl_ms), 1, is_set);
        Question { sent, changed: keys, read: Box::new(are_done) }
    }

    /// Add to a number.
    pub(crate) fn increment(&self, prefix: &str, key: &str, delta: i64) -> Question<i64> {
        let sent = self.sent(commands::increment(prefix, key, delta), 1, is_number);
        let changed = vec![format!("{prefix}{key}")];
        Question { sent, changed, read: Box::new(|answer| number(&answer)) }
    }

    /// Forget keys.
    pub(crate) fn remove(&self, prefix: &str, keys: &[&str]) -> Question<usize> {
        let pipeline = match self {
            Self::Server(_) => commands::remove(prefix, keys),
            Self::Cluster(_) => commands::remove_apart(prefix, keys),
        };
        let count = pipeline.len();
        let sent = self.sent(pipeline, 1, is_removed);
        let changed = keys.iter().map(|key| format!("{prefix}{key}")).collect();
        Question { sent, changed, read: Box::new(move |answer| removed(&answer, count)) }
    }

    /// Compare a value and set it.
    pub(crate) fn swap(&self, prefix: &str, swap: Swap<'_>) -> Question<Swapped> {
        let changed = vec![format!("{prefix}{}", swap.key)];
        let sent = self.sent(commands::swap(prefix, swap), 1, is_swapped);
        Question { sent, changed, read: Box::new(swapped) }
    }

    /// A page of the keys with this prefix, from a cursor on. None if that is no cursor.
    pub(crate) fn keys(&self, prefix: String, cursor: Option<&str>) -> Option<Listing> {
        match self {
            Self::Server(server) => {
                let from = cursor.map_or(Ok(0), str::parse).ok()?;
                let sent = Sent::Together(server.clone(), commands::keys(&prefix, from));
                let read = Box::new(move |answer| key_page(answer, &prefix));
                Some(Listing::Server(Question { sent, changed: Vec::new(), read }))
            }
            Self::Cluster(cluster) => {
                let cursor = match cursor {
                    Some(text) => Some(Cursor::read(text)?),
                    None => None,
                };
                Some(Listing::Cluster(cluster.clone(), prefix, cursor))
            }
        }
    }

    /// Commands, of which each key has `each`.
    fn sent(&self, pipeline: Pipeline, each: usize, are_right: AreRight) -> Sent {
        match self {
            Self::Server(server) => Sent::Together(server.clone(), pipeline),
            Self::Cluster(cluster) => {
                Sent::ByKey(cluster.clone(), commands::by_key(&pipeline, each), are_right)
            }
        }
    }
}

impl<T> Question<T> {
    /// Send the commands, and read their answers. This is called on the runtime on which the
    /// connections live.
    pub(crate) async fn ask(self, call: StoreCall, until: Until) -> Result<T, LinkError> {
        let Self { sent, changed, read } = self;
        let (only_read, call) = (changed.is_empty(), Arc::new(call));
        match sent {
            Sent::Together(server, pipeline) => {
                let link = server.link(call.owner().cloned());
                let commands = Arc::new(Commands { pipeline, only_read, call: Some(call) });
                link.ask(&commands, until, read).await
            }
            Sent::ByKey(cluster, steps, are_right) => {
                let terms = Terms { only_read, are_right, call };
                let answer = cluster.ask(steps, &terms, until).await?;
                read(answer).ok_or(LinkError::Garbage)
            }
        }
    }
}

impl Listing {
    /// Ask for the page. This is called on the runtime on which the connections live.
    pub(crate) async fn ask(self, call: StoreCall, until: Until) -> Result<KeyPage, LinkError> {
        match self {
            Self::Server(question) => question.ask(call, until).await,
            Self::Cluster(cluster, prefix, cursor) => {
                let commands = |from| commands::keys(&prefix, from);
                let read = |answer| key_page(answer, &prefix);
                let terms = PageTerms { commands, read };
                cluster.keys(cursor, Arc::new(call), until, terms).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_one_server_is_a_number() {
        let server = Server::new(&"redis://127.0.0.1:1".parse().unwrap(), None).unwrap();
        let remote = Remote::Server(Arc::new(server));
        let is_cursor = |cursor| remote.keys("f:".to_owned(), cursor).is_some();
        for cursor in [None, Some("0"), Some("17179869184")] {
            assert!(is_cursor(cursor), "{cursor:?}");
        }
        for cursor in ["", "-1", "x", "0 MATCH *", "18446744073709551616", "7-0-1"] {
            assert!(!is_cursor(Some(cursor)), "{cursor}");
        }
    }
}
