//! The sender of spans.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SpanProcessor};

use crate::collector::{Collector, OtlpProtocol, TIMEOUT, set_tls_provider};

/// Spans that wait to be sent; further ones are dropped. Each has a few KiB at most.
const WAITING_MAX: usize = 8192;

/// The time between two messages to the collector, and the most spans of one.
const INTERVAL: Duration = Duration::from_secs(1);
const MESSAGE_SPANS_MAX: usize = 256;

/// What is traced, and where spans go.
#[derive(Clone, Debug)]
pub struct TraceConfig {
    /// The collector.
    pub collector: Collector,
    /// The share of requests without a context of their own that are sampled, from 0 to 1.
    pub ratio: f64,
    /// Requests that take longer are kept, sampled or not.
    pub slow: Duration,
    /// The version of the program.
    pub version: &'static str,
    /// The name of this server among several.
    pub instance: String,
}

/// Why nothing can be traced.
#[derive(Debug, thiserror::Error)]
#[error("cannot send traces to {endpoint}")]
pub struct TraceSetupError {
    endpoint: String,
    source: ExporterBuildError,
}

/// The sender, with a thread of its own. Call this on a thread of a tokio runtime, on which
/// connections live.
pub(crate) fn processor(config: &TraceConfig) -> Result<BatchSpanProcessor, TraceSetupError> {
    set_tls_provider();
    let (builder, url) = (SpanExporter::builder(), config.collector.url("traces"));
    let exporter = match config.collector.protocol {
        OtlpProtocol::Grpc => builder.with_tonic().with_endpoint(url).with_timeout(TIMEOUT).build(),
        OtlpProtocol::Http => builder.with_http().with_endpoint(url).with_timeout(TIMEOUT).build(),
    };
    let failed = |source| TraceSetupError { endpoint: config.collector.endpoint.clone(), source };
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(WAITING_MAX)
        .with_max_export_batch_size(MESSAGE_SPANS_MAX)
        .with_scheduled_delay(INTERVAL)
        .build();
    let mut processor =
        BatchSpanProcessor::builder(exporter.map_err(failed)?).with_batch_config(batches).build();
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES can say more.
    let named = std::env::var_os("OTEL_SERVICE_NAME").is_some();
    let resource = Resource::builder();
    let resource = if named { resource } else { resource.with_service_name("gristmill") };
    let resource = resource.with_attributes([
        KeyValue::new("service.version", config.version),
        KeyValue::new("service.instance.id", config.instance.clone()),
    ]);
    processor.set_resource(&resource.build());
    Ok(processor)
}
