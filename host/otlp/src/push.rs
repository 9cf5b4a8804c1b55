//! Pushing metrics again and again.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use gristmill_metrics::Collected;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval_at};

use crate::message::{MetricSource, message};
use crate::sender::Sender;

/// Send the values that `collect` returns at each interval, until this is dropped. `collect` runs
/// on a thread for blocking work.
pub async fn push(
    sender: Sender,
    source: MetricSource,
    every: Duration,
    collect: Arc<dyn Fn() -> Collected + Send + Sync>,
) {
    let mut ticks = interval_at(tokio::time::Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut away_since: Option<Instant> = None;
    loop {
        ticks.tick().await;
        let (collect, source) = (collect.clone(), source.clone());
        let making = spawn_blocking(move || message(&source, &collect(), SystemTime::now()));
        // A panic was logged.
        let Ok(message) = making.await else { continue };
        match (sender.send(message).await, away_since) {
            (Ok(()), None) => {}
            (Ok(()), Some(since)) => {
                let seconds = since.elapsed().as_secs();
                tracing::info!(seconds, "metrics are pushed again");
                away_since = None;
            }
            (Err(error), None) => {
                tracing::warn!(?error, "metrics cannot be pushed");
                away_since = Some(Instant::now());
            }
            (Err(_), Some(_)) => {}
        }
    }
}
