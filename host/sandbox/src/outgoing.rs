//! The HTTP requests that a tenant's plugins send to other services, and the trait of their client.
//!
//! Refuses to know how they are sent. A tenant's document grants destinations; a request to any
//! other one never reaches the client. Which addresses a host may have is checked by the client,
//! for each connection that it makes.
//!
//! Invariant: the memory that the host needs for a request, [`OUTGOING_BYTES`], counts against its
//! tenant's budget until the client's work for it has ended.

mod tenant;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use gristmill_core::{AddressRange, HeldBytes, Name, OverBudget, Scheme};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use tokio::sync::OwnedSemaphorePermit;

pub use self::tenant::{Sending, TenantOutgoing, Timeouts};
use crate::host_work::HostWork;

/// Maximum requests of a tenant that are under way at the same time.
pub const OUTGOING_AT_ONCE: usize = 32;

/// Maximum bytes of the head of an answer, and of all that a client reads or writes ahead.
pub const OUTGOING_BUFFER_BYTES: usize = 64 << 10;

/// The memory of a request and its answer in the host: what is read and written ahead, parts of
/// both bodies on their way, the heads as texts and as maps, TLS. Bodies are never whole here.
pub const OUTGOING_BYTES: usize = 8 * OUTGOING_BUFFER_BYTES;

/// Maximum bytes of the body of a request, and of that of an answer.
pub const OUTGOING_BODY_BYTES_MAX: usize = 16 << 20;

/// A body, as it comes.
pub type OutgoingBody = UnsyncBoxBody<Bytes, OutgoingFault>;

/// Why a request got no answer, or not the whole one. The texts are for the plugin's author.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutgoingFault {
    /// No address is known for the host.
    #[error("no address of the host is known")]
    NameNotFound,
    /// All addresses of the host are of a kind that the grant does not name.
    #[error(
        "the host has {0}: if it is meant, name the address or its range under \"addresses\" of \
         the grant, as in \"addresses\": [\"10.0.0.0/8\"]"
    )]
    Prohibited(&'static str),
    /// The host refuses connections.
    #[error("the host refuses the connection")]
    Refused,
    /// The host cannot be reached.
    #[error("the host cannot be reached")]
    Unreachable,
    /// The connection was not made in time.
    #[error("no connection was made within {} ms", .0.as_millis())]
    ConnectTimeout(Duration),
    /// The certificate of the host is not accepted.
    #[error("the certificate of the host is not accepted: {0}")]
    Certificate(String),
    /// TLS failed otherwise.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// There was no answer, or no part of it, in time.
    #[error("no answer in time")]
    TooLate,
    /// The connection ended before the whole answer was there.
    #[error("the connection ended before the whole answer was there")]
    Ended,
    /// What came is not HTTP/1.1.
    #[error("the answer is not HTTP/1.1")]
    Garbage,
    /// The head of the answer is too large.
    #[error("the answer's headers are over the limit of {OUTGOING_BUFFER_BYTES} bytes, or of 100")]
    HeadTooLarge,
    /// The body of the answer is too large.
    #[error("the answer is over the limit of {OUTGOING_BODY_BYTES_MAX} bytes")]
    BodyTooLarge,
    /// The body of the request is too large.
    #[error("the request's body is over the limit of {OUTGOING_BODY_BYTES_MAX} bytes")]
    RequestTooLarge,
    /// The plugin dropped the body of the request before its end.
    #[error("the request's body was not finished")]
    Unfinished,
    /// Other requests of the tenant took all places until the deadline.
    #[error("the tenant has {OUTGOING_AT_ONCE} requests to other services under way")]
    TooMany,
    /// The tenant holds too much memory.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// This server sends no requests.
    #[error("this server sends no requests")]
    Unavailable,
}

/// A request that a plugin may send. It is dropped when the client's work for it has ended.
#[derive(Debug)]
pub struct OutgoingCall {
    /// The tenant that sends it.
    pub tenant: Name,
    /// How it travels.
    pub scheme: Scheme,
    /// The host, in lower case: a name or an address, that of IPv6 in brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The addresses that the host may have besides public ones.
    pub addresses: Vec<AddressRange>,
    /// The end of the request that the plugin works for.
    pub deadline: Instant,
    /// The time for making a connection, if the plugin set one.
    pub connect_timeout: Option<Duration>,
    /// The time until the answer's head, if the plugin set one.
    pub first_byte_timeout: Option<Duration>,
    /// The time between two parts of the answer, if the plugin set one.
    pub between_bytes_timeout: Option<Duration>,
    /// Who pays for the client's work.
    work: HostWork,
    /// Of the requests that the tenant may have under way.
    _permit: OwnedSemaphorePermit,
    /// Its memory.
    _held: HeldBytes,
}

impl OutgoingCall {
    /// Charge the tenant and the plugin's call for CPU time of a thread of the host's.
    pub fn charge(&self, cpu: Duration) {
        self.work.charge(cpu);
    }
}

/// Sends the requests of a server's plugins.
#[async_trait]
pub trait OutgoingHttp: Send + Sync {
    /// Send a request to the host of the call, whatever its URI names, and wait for the answer's
    /// head. The client follows no redirect. All work for it ends at the call's deadline, or when
    /// this future and then the answer's body are dropped.
    ///
    /// # Errors
    /// [`OutgoingFault`]. That of the answer's body comes with the body.
    async fn send(
        &self,
        call: OutgoingCall,
        request: Request<OutgoingBody>,
    ) -> Result<Response<OutgoingBody>, OutgoingFault>;
}

/// Of a server that sends no requests.
#[derive(Clone, Copy, Debug)]
pub struct NoOutgoing;

#[async_trait]
impl OutgoingHttp for NoOutgoing {
    async fn send(
        &self,
        _: OutgoingCall,
        _: Request<OutgoingBody>,
    ) -> Result<Response<OutgoingBody>, OutgoingFault> {
        Err(OutgoingFault::Unavailable)
    }
}
