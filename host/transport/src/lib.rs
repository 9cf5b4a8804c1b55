//! The parts that all planes of the server share: connections, bodies, credentials and problem
//! documents.
//!
//! In reading order: `accept` takes connections, `connections` has their permits, and `tls` their
//! certificates and handshakes. `http1` and `http2` serve one connection each; `requests` counts
//! the requests under way on it, and `answering` is an answer that is being written. `stream`,
//! `rewind`, `frames` and `coalesce` are the streams beneath. `body` reads and makes bodies,
//! `encoding` compresses them, `offload` works on large messages off the serving threads. `problem`
//! is an error as a client sees it.
//!
//! Refuses to know tenants, models and plugins. It sees only their names and digests.
//!
//! Invariants:
//! - a connection has a permit before it is served;
//! - a body is never read past its limit, and its bytes in memory count against a budget;
//! - shutdown stops accepting first, then waits for the requests under way.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod accept;
mod answering;
pub mod body;
mod coalesce;
mod connections;
pub mod credentials;
mod encoding;
mod frames;
mod http1;
mod http2;
mod line_rate;
mod listener;
mod method;
mod offload;
mod problem;
mod request_id;
mod requests;
mod rewind;
mod shutdown;
mod stream;
mod tls;
mod turns;

pub use accept::{Listening, serve};
pub use connections::{Connections, client_of};
pub use encoding::Encoding;
pub use line_rate::LineRate;
pub use listener::{ListenerConfig, Protocol};
pub use method::{Allowed, Checked};
pub use offload::{INLINE_BYTES_MAX, Offload};
pub use problem::{ErrorCodeRow, Problem, error_codes, status_of};
pub use request_id::{REQUEST_ID, RequestIds};
pub use requests::{Ongoing, Requests, StaysOpen};
pub use shutdown::Shutdown;
pub use tls::{Tls, TlsError, TlsFault, TlsFile, TlsFiles, TlsOpenError, TlsReport};
pub use turns::InTurns;
