//! The store: a folder of this server, or one at a URL that others share.

use std::time::Duration;

use anyhow::Result;
use gristmill_control::Following;
use gristmill_store::Store;

use crate::config::{Config, Data, Replicas};
use crate::data_dir;

/// The store, and how its log is followed if it is shared. `address` is that of the admin plane.
pub(super) fn open_store(config: &Config, address: String) -> Result<(Store, Option<Following>)> {
    let Data { data_dir, store, .. } = &config.data;
    let Some(url) = store else {
        return Ok((Store::open_local(&data_dir.join("store"))?, None));
    };
    let Replicas { replica_name, poll_ms, start_offline, .. } = &config.replicas;
    let name = match replica_name {
        Some(name) => name.clone(),
        None => data_dir::replica_name(data_dir)?,
    };
    let copies = data_dir.join("store-copies");
    let store = Store::open_shared(url, &copies, config.replicas.store_copies_bytes_max)?;
    tracing::info!(store = %url, replica = name.as_str(), "the store may be shared with others");
    let following = Following {
        name,
        address,
        version: env!("CARGO_PKG_VERSION"),
        poll: Duration::from_millis((*poll_ms).into()),
        wait: config.replicas.replica_wait,
        start_offline: *start_offline,
    };
    Ok((store, Some(following)))
}
