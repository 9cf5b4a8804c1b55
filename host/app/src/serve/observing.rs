//! How requests are observed, by the settings: traces, the access log, slow requests.

use std::time::Duration;

use anyhow::Result;
use gristmill_http::ObserverConfig;
use gristmill_otlp::{Collector, TraceConfig, Tracer};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::config::{Config, Traces};

/// How requests are observed. Parts of it live as long as the process. `instance` names this server
/// among several. Connections to the collector live on `threads`.
pub(super) async fn observer(
    config: &Config,
    instance: &str,
    threads: &Handle,
) -> Result<ObserverConfig> {
    let tracer = match trace_config(&config.traces, instance) {
        Some(traces) => {
            let starting = threads.spawn(async move { Tracer::start(&traces) });
            Some(&*Box::leak(Box::new(starting.await??)))
        }
        None => None,
    };
    Ok(ObserverConfig {
        edges: Box::leak(Box::default()),
        requests: Box::leak(Box::default()),
        tracer,
        access_log: config.logging.access_log,
        slow: config.logging.slow_request_ms.map(Duration::from_millis),
    })
}

fn trace_config(traces: &Traces, instance: &str) -> Option<TraceConfig> {
    Some(TraceConfig {
        collector: collector(traces)?,
        ratio: traces.trace_ratio,
        slow: Duration::from_millis(traces.trace_slow_ms),
        version: env!("CARGO_PKG_VERSION"),
        instance: instance.to_owned(),
    })
}

/// The collector, if there is one.
pub(super) fn collector(traces: &Traces) -> Option<Collector> {
    let endpoint = traces.otlp_endpoint.as_ref()?.0.clone();
    Some(Collector { endpoint, protocol: traces.otlp_protocol })
}

/// Send the traces that wait.
pub(super) async fn end(observer: &ObserverConfig) {
    if let Some(tracer) = observer.tracer {
        // It waits for the collector, but not for long. A panic is logged.
        let _ = spawn_blocking(move || tracer.shut_down()).await;
    }
}
