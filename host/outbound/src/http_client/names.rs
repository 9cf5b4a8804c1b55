//! The addresses that names have.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Maximum addresses of a host that are looked at.
const ADDRESSES_MAX: usize = 32;

/// Knows the addresses of names.
pub(super) trait Names: Send + Sync {
    /// The addresses of a host. It may block its thread.
    fn look_up(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// As the operating system knows them.
pub(super) struct SystemNames;

impl Names for SystemNames {
    fn look_up(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.take(ADDRESSES_MAX).collect())
    }
}
