//! Keeping what tenants use.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use gristmill_metrics::usage::UsageStore;
use tokio::task::spawn_blocking;

use crate::config::Config;

/// The folder of the data directory with the files.
const FOLDER: &str = "usage";

/// The time between two writes: what a server that is killed may lose.
const INTERVAL: Duration = Duration::from_secs(10);

/// The usage store in the data directory.
pub(super) fn open(config: &Config) -> Result<Arc<UsageStore>> {
    let hours = config.metrics.keep_usage_days * 24;
    let folder = config.data.data_dir.join(FOLDER);
    Ok(Arc::new(UsageStore::open(&folder, hours, SystemTime::now())?))
}

/// Write what was used, now and then, until this is dropped.
pub(super) async fn keep(store: Arc<UsageStore>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let store = store.clone();
        // A panic is logged, and the next round tries again.
        let _ = spawn_blocking(move || keep_once(&store)).await;
    }
}

/// Write what was used. What cannot be written now stays in memory for the next time.
pub(super) fn keep_once(store: &UsageStore) {
    if let Err(error) = store.keep(SystemTime::now()) {
        tracing::error!(%error, "the usage of tenants cannot be written");
    }
}
