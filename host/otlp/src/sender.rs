//! The way of metrics to the collector.

use std::error::Error;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use percent_encoding::percent_decode_str;
use prost::Message;
use tokio::time::timeout;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};

use crate::collector::{Collector, OtlpProtocol, TIMEOUT, set_tls_provider};

/// The variable with headers of each message: `name=value`, with commas between.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Why metrics were not sent.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The collector did not answer in time.
    #[error("the collector did not answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    /// The collector refused them, or cannot be reached.
    #[error("the collector did not take the metrics")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

impl PushError {
    fn of(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}

/// The way of metrics to the collector.
pub struct Sender {
    headers: HeaderMap,
    way: Way,
}

enum Way {
    Grpc(Box<MetricsServiceClient<Channel>>),
    Http { client: reqwest::Client, url: String },
}

impl Sender {
    /// A way that is taken when something is sent. Call this on a thread of a tokio runtime.
    ///
    /// # Errors
    /// The endpoint is not a URL, or no client can be made.
    pub fn new(collector: &Collector) -> Result<Self, PushError> {
        set_tls_provider();
        let headers = headers(&std::env::var(HEADERS).unwrap_or_default());
        let url = collector.url("metrics");
        let way = match collector.protocol {
            OtlpProtocol::Grpc => {
                let is_https = url.starts_with("https:");
                let mut endpoint = Endpoint::from_shared(url).map_err(PushError::of)?;
                if is_https {
                    let tls = ClientTlsConfig::new().with_native_roots();
                    endpoint = endpoint.tls_config(tls).map_err(PushError::of)?;
                }
                Way::Grpc(Box::new(MetricsServiceClient::new(endpoint.connect_lazy())))
            }
            OtlpProtocol::Http => {
                let client = reqwest::Client::builder().build().map_err(PushError::of)?;
                Way::Http { client, url }
            }
        };
        Ok(Self { headers, way })
    }

    /// Send a message.
    ///
    /// # Errors
    /// The collector does not take it in time.
    pub(crate) async fn send(&self, message: ExportMetricsServiceRequest) -> Result<(), PushError> {
        let sending = async {
            match &self.way {
                Way::Grpc(client) => {
                    let metadata = MetadataMap::from_headers(self.headers.clone());
                    let request = tonic::Request::from_parts(metadata, Default::default(), message);
                    client.as_ref().clone().export(request).await.map_err(PushError::of)?;
                }
                Way::Http { client, url } => {
                    let request = client.post(url).headers(self.headers.clone());
                    let request = request.header("content-type", "application/x-protobuf");
                    let answer = request.body(message.encode_to_vec()).send().await;
                    let answer = answer.and_then(reqwest::Response::error_for_status);
                    answer.map_err(PushError::of)?;
                }
            }
            Ok(())
        };
        timeout(TIMEOUT, sending).await.map_err(|_| PushError::Timeout)?
    }
}

/// The headers in the variable's text. What is not a header is left out.
fn headers(text: &str) -> HeaderMap {
    let header = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let name = HeaderName::try_from(name.trim()).ok()?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    };
    text.split(',').filter_map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::headers;

    #[test]
    fn headers_are_read_as_opentelemetry_says() {
        let headers = headers("api-key=a%20b, x-other = c,,=d,bad name=e");
        assert_eq!(headers.len(), 2);
        assert_eq!(
            (&headers["api-key"], &headers["x-other"]),
            (&"a b".parse().unwrap(), &"c".parse().unwrap())
        );
        assert!(!format!("{headers:?}").contains("a b"), "a secret is not shown");
    }
}
