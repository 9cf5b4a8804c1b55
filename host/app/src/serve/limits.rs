//! The limits on each plane's connections, derived from the limit on open files.

use gristmill_transport::{Connections, ListenerConfig};

use crate::config::Config;

/// Open files that are not for connections: listeners, the log, blobs, models and plugins.
const OWN_FILES: usize = 64;

/// The admin plane may have one connection for this number of open files, within the minimum and
/// the maximum below. Clients of the data plane cannot take these connections.
const FILES_PER_ADMIN_CONNECTION: usize = 16;
const ADMIN_CONNECTIONS_MIN: usize = 64;
const ADMIN_CONNECTIONS_MAX: usize = 1024;

/// The open files of one admin connection: its socket, its upload, and the compiler's input and
/// output.
const FILES_OF_ADMIN_CONNECTION: usize = 4;

/// The fewest connections of the data plane, and of one client, even if fewer files may be open.
const CONNECTIONS_MIN: usize = 16;

/// By default one client may have the number of connections divided by this.
const CONNECTIONS_PER_CLIENTS_CONNECTION: usize = 2;

/// The limits of the planes' listeners.
pub(super) struct Limits {
    /// The limits of the data plane and of gRPC, which share their connections.
    pub(super) data: ListenerConfig,
    pub(super) admin: ListenerConfig,
}

/// The listeners' limits if at most `files` files may be open.
pub(super) fn limits(config: &Config, files: usize) -> Limits {
    let limits = ListenerConfig {
        header_read_timeout: config.connections.header_timeout,
        write_timeout: config.connections.write_timeout,
        drain_timeout: config.shutdown.drain_timeout,
        ..ListenerConfig::default()
    };
    let admin = files / FILES_PER_ADMIN_CONNECTION;
    let admin = admin.clamp(ADMIN_CONNECTIONS_MIN, ADMIN_CONNECTIONS_MAX);
    let own_files = OWN_FILES + FILES_OF_ADMIN_CONNECTION * admin;
    let data = files.saturating_sub(own_files).max(CONNECTIONS_MIN);
    let data = config.connections.connections_max.unwrap_or(data);
    let of_one = (data / CONNECTIONS_PER_CLIENTS_CONNECTION).max(CONNECTIONS_MIN);
    let of_one = config.connections.connections_per_client_max.unwrap_or(of_one);
    let connections = Connections::new(data, Some(of_one));
    let admin = ListenerConfig { connections: Connections::new(admin, None), ..limits.clone() };
    Limits { data: ListenerConfig { connections, ..limits }, admin }
}
