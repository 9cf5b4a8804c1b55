//! The permits for connections, and the list of connections that wait for a request.
//!
//! A connection is an open file, and the number of open files is limited. When all permits are
//! taken, the connection that has waited longest is closed, so that a new connection gets its
//! permit. If none waits, the new connection has to wait. The admin plane has its own permits,
//! which other connections cannot take.
//!
//! Invariant: a connection that has a request, or an answer that its client is reading, is never
//! closed to make room. No client has more than its share of the permits.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The interval at which a new connection without a permit polls for a connection that waits.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The time between telling one connection to close and telling another. An HTTP/2 connection tells
/// its client before it closes.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

/// The interval at which a connection checks whether it is in use. A connection that was unused for
/// this long counts as waiting.
pub(crate) const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The permits for connections, of one or several listeners: clones share them.
#[derive(Clone, Debug)]
pub struct Connections(Arc<ConnectionCounts>);

#[derive(Debug)]
struct ConnectionCounts {
    permits: Arc<Semaphore>,
    max: usize,
    per_client_max: Option<usize>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// The waiting connections, by the time at which they began to wait. A number distinguishes
    /// those that began at the same time.
    waiting: BTreeMap<(Instant, u64), Arc<Notify>>,
    last: u64,
    /// Counted only if the connections of a client are limited.
    clients: HashMap<IpAddr, usize>,
}

impl Connections {
    /// At most `max` connections, and at most `per_client_max` of one client. A client is an IPv4
    /// address, or an IPv6 network of 64 bits: one host may have all addresses of such a network.
    pub fn new(max: usize, per_client_max: Option<usize>) -> Self {
        let max = max.min(Semaphore::MAX_PERMITS);
        let permits = Arc::new(Semaphore::new(max));
        Self(Arc::new(ConnectionCounts { permits, max, per_client_max, open: Mutex::default() }))
    }

    /// The connections now.
    pub fn open(&self) -> usize {
        self.0.max.saturating_sub(self.0.permits.available_permits())
    }

    /// Maximum connections at the same time.
    pub fn max(&self) -> usize {
        self.0.max
    }

    /// A permit for a connection of `client`, as soon as one is free. None if the client has
    /// reached its limit.
    pub(crate) async fn permit(&self, client: IpAddr) -> Option<ConnectionPermit> {
        let client = self.counted(client)?;
        loop {
            let permits = self.0.permits.clone();
            if let Ok(permit) = permits.clone().try_acquire_owned() {
                return Some(ConnectionPermit { _permit: permit, _client: client });
            }
            let closes = self.close_longest_waiting();
            // Connections that close by themselves make room as well.
            let wait = if closes { CLOSED_WITHIN } else { POLL_INTERVAL };
            if let Ok(Ok(permit)) = timeout(wait, permits.acquire_owned()).await {
                return Some(ConnectionPermit { _permit: permit, _client: client });
            }
        }
    }

    /// Register a connection that has waited for a request since `since`, so that it can be closed.
    pub(crate) fn wait(&self, since: Instant) -> IdleConnection {
        let closes = Arc::new(Notify::new());
        let mut open = self.0.open.lock();
        open.last += 1;
        let key = (since, open.last);
        open.waiting.insert(key, closes.clone());
        IdleConnection { connections: self.clone(), key, closes }
    }

    /// Tell the connection that has waited longest to close. Returns whether one was waiting.
    fn close_longest_waiting(&self) -> bool {
        let longest = self.0.open.lock().waiting.pop_first();
        longest.inspect(|(_, closes)| closes.notify_one()).is_some()
    }

    fn counted(&self, client: IpAddr) -> Option<Client> {
        let Some(max) = self.0.per_client_max else { return Some(Client(None)) };
        let client = client_of(client);
        let mut open = self.0.open.lock();
        let count = open.clients.entry(client).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(Client(Some((self.clone(), client))))
    }
}

impl Default for Connections {
    /// Permits without a limit.
    fn default() -> Self {
        Self::new(usize::MAX, None)
    }
}

/// A permit for a connection, taken until this is dropped.
pub(crate) struct ConnectionPermit {
    _permit: OwnedSemaphorePermit,
    _client: Client,
}

/// A connection that counts for its client, if the connections of a client are limited.
struct Client(Option<(Connections, IpAddr)>);

impl Drop for Client {
    fn drop(&mut self) {
        let Some((connections, client)) = self.0.take() else { return };
        let mut open = connections.0.open.lock();
        if let Some(count) = open.clients.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                open.clients.remove(&client);
            }
        }
    }
}

/// A connection that is registered as waiting until this is dropped.
pub(crate) struct IdleConnection {
    connections: Connections,
    key: (Instant, u64),
    closes: Arc<Notify>,
}

impl IdleConnection {
    /// Wait until the connection must close.
    pub(crate) async fn closes(&self) {
        self.closes.notified().await;
    }
}

impl Drop for IdleConnection {
    fn drop(&mut self) {
        self.connections.0.open.lock().waiting.remove(&self.key);
    }
}

/// The address by which a client is counted: an IPv4 address, or an IPv6 network of 64 bits.
pub fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::{Duration, Instant};

    use futures_util::FutureExt;

    use super::{Connections, client_of};

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_closes_the_connection_that_has_waited_longest_or_waits_itself() {
        let connections = Connections::new(3, None);
        let mut permits = Vec::new();
        for _ in 0..3 {
            permits.push(connections.permit(CLIENT).await.unwrap());
        }
        let now = Instant::now();
        let younger = connections.wait(now);
        let oldest = connections.wait(now - Duration::from_secs(2));
        let in_use = connections.wait(now - Duration::from_secs(9));
        drop(in_use);
        let mut newcomer = Box::pin(connections.permit(CLIENT));
        assert!((&mut newcomer).now_or_never().is_none());
        oldest.closes().await;
        assert!(younger.closes().now_or_never().is_none());
        // From here on no connection waits.
        drop((oldest, younger));
        assert!((&mut newcomer).now_or_never().is_none());
        permits.pop();
        permits.push(newcomer.await.unwrap());
        let mut newcomer = Box::pin(connections.permit(CLIENT));
        assert!((&mut newcomer).now_or_never().is_none());
        // A connection that is in use begins to wait.
        let waiting = connections.wait(now);
        tokio::select! {
            biased;
            _ = &mut newcomer => panic!("there is no permit"),
            () = waiting.closes() => {}
        }
        permits.pop();
        assert!(newcomer.await.is_some());
    }

    #[tokio::test]
    async fn the_connections_of_a_client_are_limited() {
        let connections = Connections::new(9, Some(2));
        let first = connections.permit(CLIENT).await.unwrap();
        let _second = connections.permit(CLIENT).await.unwrap();
        assert!(connections.permit(CLIENT).await.is_none());
        let other = connections.permit(Ipv4Addr::new(127, 0, 0, 2).into()).await;
        assert!(other.is_some());
        drop(first);
        assert!(connections.permit(CLIENT).await.is_some());
    }

    #[test]
    fn a_network_of_ipv6_and_an_address_of_ipv4_are_one_client() {
        for (address, client) in [
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("192.0.2.7", "192.0.2.7"),
        ] {
            let client: IpAddr = client.parse().unwrap();
            assert_eq!(client_of(address.parse().unwrap()), client, "{address}");
        }
    }
}
