//! Counting the work under way on one connection: calls, and parts of answers that are not written.
//!
//! The counts decide whether a connection may be closed to make room. An answer may stay open for
//! long, for example that of a health watch. It does not count by itself: only its parts count,
//! until they are written.
//!
//! Invariant: a call that has begun is answered within its own timeouts, even if its connection is
//! told to close meanwhile. A client that reads almost nothing of its answers for the write timeout
//! is disconnected.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::connections::{Connections, IDLE_INTERVAL};

/// The least bytes that a client must read of its answers within the write timeout. Reading all of
/// one part is enough, too.
const TAKEN_BYTES_MIN: usize = 4 << 10;

/// An extension of an answer that stays open for as long as its client wants. After its head, the
/// handler counts the work for it with [`Requests::begin`].
#[derive(Clone, Copy, Debug)]
pub struct StaysOpen;

/// The counts of work under way on one connection. An extension of each HTTP/2 call.
#[derive(Debug, Default)]
pub struct Requests {
    begun: AtomicUsize,
    ended: AtomicUsize,
    /// The parts of answers that hyper took.
    parts: AtomicUsize,
    /// The parts of these that are written or given up.
    parts_ended: AtomicUsize,
    written_bytes: AtomicUsize,
}

/// A call or a part of an answer that is under way until this is dropped, or ended before.
#[derive(Debug)]
pub struct Ongoing {
    requests: Arc<Requests>,
    has_ended: bool,
}

/// A part of an answer. It counts as unwritten until this is dropped.
#[derive(Debug)]
pub(crate) struct Unwritten(Ongoing);

/// The time at which a client last read enough of its answers.
pub(crate) struct Taking {
    taken: Taken,
    at: Instant,
}

/// A value that changes when a client has read enough of its answers.
#[derive(Clone, Copy, PartialEq)]
struct Taken {
    parts: usize,
    /// In units of [`TAKEN_BYTES_MIN`].
    bytes: usize,
}

/// Why the server closes a connection that its client keeps open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// It waits for a request, and another connection needs its permit.
    Evicted,
    /// Its client does not read its answers.
    Stalled,
}

impl Requests {
    /// Count a call or a part as under way until the result is dropped.
    pub fn begin(self: &Arc<Self>) -> Ongoing {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Ongoing { requests: self.clone(), has_ended: false }
    }

    pub(crate) fn begin_part(self: &Arc<Self>) -> Unwritten {
        self.parts.fetch_add(1, Ordering::Relaxed);
        Unwritten(self.begin())
    }

    /// The number of calls and parts that have begun so far.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    pub(crate) fn are_under_way(&self) -> bool {
        self.ended.load(Ordering::Relaxed) != self.begun()
    }

    /// Wait until the connection must close, and return why.
    pub(crate) async fn closes(&self, connections: &Connections, write_timeout: Duration) -> Close {
        loop {
            let Ok(since) = self.wait_idle(write_timeout).await else { return Close::Stalled };
            let begun = self.begun();
            let waiting = connections.wait(since.into_std());
            while self.begun() == begun {
                if timeout(IDLE_INTERVAL, waiting.closes()).await.is_ok() && self.begun() == begun {
                    return Close::Evicted;
                }
            }
        }
    }

    /// Wait until nothing has been under way for a while. Returns when that while began.
    ///
    /// # Errors
    /// [`Close::Stalled`] if the client reads almost nothing of its answers for `write_timeout`.
    pub(crate) async fn wait_idle(&self, write_timeout: Duration) -> Result<Instant, Close> {
        let (mut begun, mut taking) = (self.begun(), Taking::new(self));
        loop {
            let since = Instant::now();
            sleep(IDLE_INTERVAL).await;
            let is_same = std::mem::replace(&mut begun, self.begun()) == begun;
            if is_same && !self.are_under_way() {
                return Ok(since);
            }
            if taking.has_stalled(self, write_timeout) {
                return Err(Close::Stalled);
            }
        }
    }

    fn has_unwritten(&self) -> bool {
        self.parts_ended.load(Ordering::Relaxed) != self.parts.load(Ordering::Relaxed)
    }

    fn taken(&self) -> Taken {
        Taken {
            parts: self.parts_ended.load(Ordering::Relaxed),
            bytes: self.written_bytes.load(Ordering::Relaxed) / TAKEN_BYTES_MIN,
        }
    }
}

impl Taking {
    pub(crate) fn new(requests: &Requests) -> Self {
        Self { taken: requests.taken(), at: Instant::now() }
    }

    /// Whether an answer is unwritten and the client has read almost nothing for `write_timeout`.
    /// To be called repeatedly.
    pub(crate) fn has_stalled(&mut self, requests: &Requests, write_timeout: Duration) -> bool {
        let taken = requests.taken();
        if taken != self.taken || !requests.has_unwritten() {
            *self = Self { taken, at: Instant::now() };
        }
        self.at.elapsed() >= write_timeout
    }
}

impl Ongoing {
    /// The counts of its connection.
    pub(crate) fn requests(&self) -> &Arc<Requests> {
        &self.requests
    }

    /// It is not under way any more. Dropping it does not count again.
    pub(crate) fn end(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.requests.ended.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Unwritten {
    /// Count `bytes` of it as written.
    pub(crate) fn advance(&self, bytes: usize) {
        self.0.requests.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.0.requests.parts_ended.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;
    use std::time::Duration;

    use super::{Close, Requests, TAKEN_BYTES_MIN};
    use crate::connections::{Connections, IDLE_INTERVAL};

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_connection_closes_only_while_it_has_no_request() {
        let connections = Connections::new(1, None);
        let requests = Arc::new(Requests::default());
        let mut closes = Box::pin(requests.closes(&connections, WRITE_TIMEOUT));
        let wait = || tokio::time::sleep(IDLE_INTERVAL * 60);
        let ongoing = requests.begin();
        let _permit = connections.permit(CLIENT).await;
        tokio::select! {
            close = &mut closes => panic!("a request is under way: {close:?}"),
            _ = connections.permit(CLIENT) => panic!("there is no permit"),
            () = wait() => {}
        }
        drop(ongoing);
        tokio::select! {
            close = &mut closes => assert_eq!(close, Close::Evicted),
            _ = connections.permit(CLIENT) => panic!("there is no permit"),
        }
    }

    #[test]
    fn a_call_ends_once() {
        let requests = Arc::new(Requests::default());
        let (mut stays_open, other) = (requests.begin(), requests.begin());
        stays_open.end();
        drop(stays_open);
        assert!(requests.are_under_way());
        drop(other);
        assert!(!requests.are_under_way());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_almost_nothing_of_its_answers_is_stalled() {
        let connections = Connections::new(1, None);
        let requests = Arc::new(Requests::default());
        let mut closes = Box::pin(requests.closes(&connections, WRITE_TIMEOUT));
        let part = requests.begin_part();
        // It reads enough, each time shortly before the timeout.
        for _ in 0..20 {
            tokio::select! {
                close = &mut closes => panic!("it reads its answer: {close:?}"),
                () = tokio::time::sleep(WRITE_TIMEOUT - IDLE_INTERVAL * 2) => {}
            }
            part.advance(TAKEN_BYTES_MIN);
        }
        // A byte a second is not enough.
        let trickles = async {
            loop {
                part.advance(1);
                tokio::time::sleep(IDLE_INTERVAL).await;
            }
        };
        tokio::select! {
            close = &mut closes => assert_eq!(close, Close::Stalled),
            () = trickles => {}
        }
    }
}
