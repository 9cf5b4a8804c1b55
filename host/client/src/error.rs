//! Why a request got no answer.

use std::io;
use std::time::Duration;

use crate::tls::{TlsError, TlsRefusal};

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No connection was made; the host's name may be unknown.
    #[error("cannot connect to {address}")]
    Connect {
        /// Host and port.
        address: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No connection was made in time.
    #[error("{address} accepts no connection within {} s", after.as_secs())]
    ConnectTimeout {
        /// Host and port.
        address: String,
        /// The time for which the client tried.
        after: Duration,
    },
    /// No session of TLS was made.
    #[error("no session of TLS with {address} could be made")]
    Tls {
        /// Host and port.
        address: String,
        /// What the library or the system said.
        #[source]
        source: io::Error,
    },
    /// The settings of TLS cannot be made.
    #[error(transparent)]
    TlsFiles(#[from] TlsError),
    /// The connection broke, or the answer is not HTTP/1.1.
    #[error("the exchange with {address} failed")]
    Exchange {
        /// Host and port.
        address: String,
        /// What the HTTP library said.
        #[source]
        source: hyper::Error,
    },
    /// The answer did not come in time.
    #[error("{address} does not answer within {} s", after.as_secs())]
    AnswerTimeout {
        /// Host and port.
        address: String,
        /// The time for which the client waited.
        after: Duration,
    },
    /// The answer has a longer body than is read.
    #[error("the answer of {address} is longer than {limit} bytes")]
    AnswerTooLong {
        /// Host and port.
        address: String,
        /// The longest body that is read.
        limit: usize,
    },
    /// The method, the path or a header cannot be sent.
    #[error("the request cannot be sent")]
    Request(#[from] http::Error),
    /// The system refused the resources for a runtime.
    #[error("cannot start a runtime for the request")]
    Runtime(#[source] io::Error),
}

impl ClientError {
    /// Why server and client do not agree on a session of TLS, if that is the cause. A server may
    /// refuse a client's certificate only after the client made its session.
    pub fn tls_refusal(&self) -> Option<TlsRefusal> {
        TlsRefusal::of(self)
    }
}
