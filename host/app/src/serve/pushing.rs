//! Pushing metrics to a collector, by the settings.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use gristmill_admin::observe::Observer;
use gristmill_otlp::{MetricSource, Sender, push};
use tokio::runtime::Handle;

use crate::config::Config;
use crate::serve::observing::collector;

/// Begin to push, if that is asked for. `instance` names this server among several; it runs on
/// `threads`, until the process ends.
pub(super) async fn start(
    config: &Config,
    instance: &str,
    observer: Arc<Observer>,
    threads: &Handle,
) -> Result<()> {
    let (Some(seconds), Some(collector)) =
        (config.metrics.push_metrics_s, collector(&config.traces))
    else {
        return Ok(());
    };
    // Its connections live on the threads on which it is made.
    let sender = threads.spawn(async move { Sender::new(&collector) }).await??;
    let source = MetricSource {
        version: env!("CARGO_PKG_VERSION"),
        instance: instance.to_owned(),
        since: SystemTime::now(),
    };
    let collect = Arc::new(move || observer.collect());
    threads.spawn(push(sender, source, Duration::from_secs(seconds), collect));
    Ok(())
}
