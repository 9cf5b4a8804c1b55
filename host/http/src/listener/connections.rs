//! How many connections there are, and which of them only wait.
//!
//! A connection is an open file, and a process has so many of them. When all places are taken, the
//! connection that has waited longest for a request is closed, so that a newcomer finds one; where
//! none waits, the newcomer does. The admin plane has places of its own, which no traffic takes.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

/// How often a newcomer without a place looks for a connection that has begun to wait.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// How often a connection looks whether it is in use. One that is not for this long waits.
pub(super) const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The places for connections, of one or several listeners: clones share them.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    places: Arc<Semaphore>,
    per_client_max: Option<usize>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// Those that wait, by since when; the numbers tell apart those that began at the same time.
    waiting: BTreeMap<(Instant, u64), Arc<Notify>>,
    last: u64,
    /// Counted only where clients are limited.
    clients: HashMap<IpAddr, usize>,
}

impl Connections {
    /// At most `max` connections, and at most `per_client_max` of one address.
    pub fn new(max: usize, per_client_max: Option<usize>) -> Self {
        let places = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        Self(Arc::new(Shared { places, per_client_max, open: Mutex::default() }))
    }

    /// A place for a connection of `client`, as soon as there is one; none where the client has as
    /// many as it may.
    pub(super) async fn place(&self, client: IpAddr) -> Option<Place> {
        let client = self.counted(client)?;
        loop {
            let places = self.0.places.clone();
            if let Ok(permit) = places.clone().try_acquire_owned() {
                return Some(Place { _permit: permit, _client: client });
            }
            self.close_longest_waiting();
            // Connections that close by themselves make room as well.
            if let Ok(Ok(permit)) = timeout(LOOK_INTERVAL, places.acquire_owned()).await {
                return Some(Place { _permit: permit, _client: client });
            }
        }
    }

    /// Let a connection be closed that has waited for a request since `since`.
    pub(super) fn wait(&self, since: Instant) -> Waiting {
        let closes = Arc::new(Notify::new());
        let mut open = lock(&self.0.open);
        open.last += 1;
        let key = (since, open.last);
        open.waiting.insert(key, closes.clone());
        Waiting { connections: self.clone(), key, closes }
    }

    fn close_longest_waiting(&self) {
        if let Some((_, closes)) = lock(&self.0.open).waiting.pop_first() {
            closes.notify_one();
        }
    }

    fn counted(&self, client: IpAddr) -> Option<Client> {
        let Some(max) = self.0.per_client_max else { return Some(Client(None)) };
        let mut open = lock(&self.0.open);
        let count = open.clients.entry(client).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(Client(Some((self.clone(), client))))
    }
}

impl Default for Connections {
    /// As many as there are.
    fn default() -> Self {
        Self::new(usize::MAX, None)
    }
}

/// One of the places, until it is dropped.
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
    _client: Client,
}

/// A connection that counts as its client's, where clients are limited.
struct Client(Option<(Connections, IpAddr)>);

impl Drop for Client {
    fn drop(&mut self) {
        let Some((connections, client)) = self.0.take() else { return };
        let mut open = lock(&connections.0.open);
        if let Some(count) = open.clients.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                open.clients.remove(&client);
            }
        }
    }
}

/// A connection that waits, until this is dropped.
pub(super) struct Waiting {
    connections: Connections,
    key: (Instant, u64),
    closes: Arc<Notify>,
}

impl Waiting {
    /// Wait until it is to close.
    pub(super) async fn closes(&self) {
        self.closes.notified().await;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        lock(&self.connections.0.open).waiting.remove(&self.key);
    }
}

/// The requests of one connection.
#[derive(Debug, Default)]
pub(super) struct Requests {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

/// A request that is not answered yet, or whose answer is not written, until this is dropped.
#[derive(Debug)]
pub(super) struct Ongoing(Arc<Requests>);

impl Requests {
    pub(super) fn begin(self: &Arc<Self>) -> Ongoing {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Ongoing(self.clone())
    }

    /// How many have begun.
    pub(super) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    pub(super) fn are_under_way(&self) -> bool {
        self.ended.load(Ordering::Relaxed) != self.begun()
    }

    /// Wait until the connection that these came by has waited longest of all and is to close.
    pub(super) async fn closes(&self, connections: &Connections) {
        let mut seen = None;
        loop {
            let since = Instant::now();
            sleep(IDLE_INTERVAL).await;
            let begun = Some(self.begun());
            let was_idle = std::mem::replace(&mut seen, begun) == begun && !self.are_under_way();
            if !was_idle {
                continue;
            }
            let waiting = connections.wait(since);
            while Some(self.begun()) == begun {
                if timeout(IDLE_INTERVAL, waiting.closes()).await.is_ok()
                    && Some(self.begun()) == begun
                {
                    return;
                }
            }
        }
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use futures_util::FutureExt;

    use super::{Connections, IDLE_INTERVAL, Requests};

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_closes_the_connection_that_has_waited_longest_or_waits_itself() {
        let connections = Connections::new(3, None);
        let mut places = Vec::new();
        for _ in 0..3 {
            places.push(connections.place(CLIENT).await.unwrap());
        }
        let now = Instant::now();
        let younger = connections.wait(now);
        let oldest = connections.wait(now - Duration::from_secs(2));
        let in_use = connections.wait(now - Duration::from_secs(9));
        drop(in_use);
        let mut newcomer = Box::pin(connections.place(CLIENT));
        assert!((&mut newcomer).now_or_never().is_none());
        oldest.closes().await;
        assert!(younger.closes().now_or_never().is_none());
        // It is closed by now; and then none waits.
        drop((oldest, younger));
        assert!((&mut newcomer).now_or_never().is_none());
        places.pop();
        places.push(newcomer.await.unwrap());
        let mut newcomer = Box::pin(connections.place(CLIENT));
        assert!((&mut newcomer).now_or_never().is_none());
        // One of those that are in use begins to wait.
        let waiting = connections.wait(now);
        tokio::select! {
            biased;
            _ = &mut newcomer => panic!("there is no place"),
            () = waiting.closes() => {}
        }
        places.pop();
        assert!(newcomer.await.is_some());
    }

    #[tokio::test]
    async fn a_client_has_so_many_connections() {
        let connections = Connections::new(9, Some(2));
        let first = connections.place(CLIENT).await.unwrap();
        let _second = connections.place(CLIENT).await.unwrap();
        assert!(connections.place(CLIENT).await.is_none());
        let other = connections.place(Ipv4Addr::new(127, 0, 0, 2).into()).await;
        assert!(other.is_some());
        drop(first);
        assert!(connections.place(CLIENT).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_closes_only_while_it_has_no_request() {
        let connections = Connections::new(1, None);
        let requests = Arc::new(Requests::default());
        let mut closes = Box::pin(requests.closes(&connections));
        let wait = || tokio::time::sleep(IDLE_INTERVAL * 3);
        let ongoing = requests.begin();
        let _place = connections.place(CLIENT).await;
        tokio::select! {
            () = &mut closes => panic!("a request is under way"),
            _ = connections.place(CLIENT) => panic!("there is no place"),
            () = wait() => {}
        }
        drop(ongoing);
        tokio::select! {
            () = &mut closes => {}
            _ = connections.place(CLIENT) => panic!("there is no place"),
        }
    }
}
