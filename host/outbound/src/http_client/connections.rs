//! The connections of one tenant that wait for another request, and its look-ups of names.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{AddressRange, Scheme};
use gristmill_sandbox::OutgoingCall;
use hyper::client::conn::http1::SendRequest;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::request_body::RequestBody;
use crate::addresses::prohibited;
use crate::stream::Flow;

/// Maximum connections of a tenant that wait.
const IDLE_MAX: usize = 16;

/// How long one waits. Many servers close their end a little later.
const IDLE_TIME: Duration = Duration::from_secs(30);

/// Maximum look-ups of names of a tenant at the same time: each takes a thread until the system's
/// resolver gives up, also when its request is gone.
const LOOKUPS_MAX: usize = 4;

/// What a connection leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HttpOrigin {
    pub(super) scheme: Scheme,
    pub(super) host: String,
    pub(super) port: u16,
}

/// A connection, which its owner alone uses.
pub(super) struct Connection {
    pub(super) sender: SendRequest<RequestBody>,
    /// The address that was checked.
    pub(super) peer: IpAddr,
    /// The state of its bytes.
    pub(super) flow: Arc<Flow>,
    /// Reads and writes. It ends when this is dropped.
    pub(super) _driver: JoinSet<()>,
}

/// The connections of a tenant that wait, those that began to wait last at the end.
pub(super) struct Connections {
    idle: Mutex<Vec<Idle>>,
    pub(super) lookups: Arc<Semaphore>,
}

struct Idle {
    place: HttpOrigin,
    since: Instant,
    connection: Connection,
}

/// Charges a request for the work for its connection, at the latest when this is dropped.
pub(super) struct Charging<'a> {
    call: &'a OutgoingCall,
    flow: Arc<Flow>,
}

impl Connection {
    /// Charge the request from now on. Work that is left of an earlier one is charged, too.
    pub(super) fn charging<'a>(&self, call: &'a OutgoingCall) -> Charging<'a> {
        Charging { call, flow: self.flow.clone() }
    }
}

impl Charging<'_> {
    /// Charge for the work so far.
    pub(super) fn charge(&self) {
        self.call.charge(self.flow.take_work());
    }
}

impl Drop for Charging<'_> {
    fn drop(&mut self) {
        self.charge();
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self { idle: Mutex::default(), lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

impl Connections {
    /// One that leads to this place, and to an address that may still be asked.
    pub(super) fn take(&self, place: &HttpOrigin, ranges: &[AddressRange]) -> Option<Connection> {
        let mut idle = self.idle.lock();
        idle.retain(|idle| !idle.connection.sender.is_closed());
        let fits = |idle: &Idle| {
            idle.place == *place
                && idle.connection.sender.is_ready()
                && prohibited(idle.connection.peer, ranges).is_none()
        };
        let at = idle.iter().rposition(fits)?;
        Some(idle.remove(at).connection)
    }

    /// Let a connection wait for another request. If too many do, the oldest one is dropped. One
    /// over which the request is still being sent is dropped, too: its answer came early.
    pub(super) fn keep(&self, place: HttpOrigin, connection: Connection) {
        if !connection.sender.is_ready() {
            return;
        }
        connection.flow.answered();
        let mut idle = self.idle.lock();
        if idle.len() == IDLE_MAX {
            idle.remove(0);
        }
        idle.push(Idle { place, since: Instant::now(), connection });
    }

    /// Drop those that have waited for too long. Returns whether some are left, or look-ups, which
    /// may be there longer than their requests.
    pub(super) fn drop_idle(&self, now: Instant) -> bool {
        let mut idle = self.idle.lock();
        idle.retain(|idle| {
            let waited = now.saturating_duration_since(idle.since);
            waited < IDLE_TIME && !idle.connection.sender.is_closed()
        });
        !idle.is_empty() || self.lookups.available_permits() < LOOKUPS_MAX
    }
}
