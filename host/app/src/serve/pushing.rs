//! Pushing metrics to a collector, by the settings.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use gristmill_observe::Observer;
use gristmill_push::{Sender, SenderConfig, Source, push};
use tokio::runtime::Handle;

use crate::config::Config;

/// Begin to push, if that is asked for. `instance` names this server among several; it runs on
/// `threads`, until the process ends.
pub(super) async fn start(
    config: &Config,
    instance: &str,
    observer: Arc<Observer>,
    threads: &Handle,
) -> Result<()> {
    let (Some(seconds), Some(endpoint)) =
        (config.metrics.push_metrics_s, &config.traces.otlp_endpoint)
    else {
        return Ok(());
    };
    let sender =
        SenderConfig { endpoint: endpoint.0.clone(), protocol: config.traces.otlp_protocol };
    // Its connections live on the threads on which it is made.
    let sender = threads.spawn(async move { Sender::new(&sender) }).await??;
    let source = Source {
        version: env!("CARGO_PKG_VERSION"),
        instance: instance.to_owned(),
        since: SystemTime::now(),
    };
    let collect = Arc::new(move || observer.collect());
    threads.spawn(push(sender, source, Duration::from_secs(seconds), collect));
    Ok(())
}
