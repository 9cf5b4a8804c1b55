//! The collector, to which both traces and metrics go.

use std::time::Duration;

/// The time that a message may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// How traces and metrics travel to a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// OTLP over gRPC.
    Grpc,
    /// OTLP over HTTP, as protobuf.
    Http,
}

/// The collector.
#[derive(Clone, Debug)]
pub struct Collector {
    /// Its URL, such as `http://collector:4317`. Over HTTP, `/v1/traces` or `/v1/metrics` is added.
    pub endpoint: String,
    /// How messages travel.
    pub protocol: OtlpProtocol,
}

impl Collector {
    /// The URL that a client calls for `signal`: `traces` or `metrics`.
    pub(crate) fn url(&self, signal: &str) -> String {
        let base = self.endpoint.trim_end_matches('/');
        match self.protocol {
            OtlpProtocol::Grpc => base.to_owned(),
            OtlpProtocol::Http => format!("{base}/v1/{signal}"),
        }
    }
}

/// Give the process a TLS provider, which HTTP clients take. It may have one already.
pub(crate) fn set_tls_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
