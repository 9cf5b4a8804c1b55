//! The socket of a connection.

use std::pin::Pin;

use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutStream;

/// A socket whose writes must end within a timeout.
pub(crate) type Stream = Pin<Box<TimeoutStream<TcpStream>>>;
