//! The configuration of a listener.

use std::time::Duration;

use crate::connections::Connections;

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, for gRPC.
    Http2,
}

/// Bounds on a connection.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// The longest time from a connection's opening, or from the end of its last response, to the
    /// beginning of the next request, and again from there to the end of its headers. With TLS, a
    /// handshake has as long before.
    pub header_read_timeout: Duration,
    /// Maximum bytes of a request's line and headers.
    pub header_bytes_max: usize,
    /// The longest time for which a client may read almost nothing of its answers.
    pub write_timeout: Duration,
    /// The longest time for which a shutdown waits for requests under way.
    pub drain_timeout: Duration,
    /// The permits for connections.
    pub connections: Connections,
}

impl Default for ListenerConfig {
    fn default() -> Self {
        Self {
            header_read_timeout: Duration::from_secs(30),
            header_bytes_max: 32 << 10,
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(30),
            connections: Connections::default(),
        }
    }
}
