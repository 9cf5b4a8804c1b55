//! Sending of requests for `wasmtime-wasi-http`, and what is told of those that fail.

use std::sync::Arc;

use http::{Request, Response};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tracing::Instrument;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use crate::capability::log::{Level, Log};
use crate::grant::Grant;
use crate::outgoing::{OutgoingBody, OutgoingFault, Sending, TenantOutgoing, Timeouts};

/// The bytes of a request's body that a guest writes at a time. As many wait to be sent.
pub(super) const WRITTEN_BYTES_MAX: usize = 16 << 10;

/// What a call may send, and what it has sent.
pub(super) struct Http {
    /// The destinations, and whether the call belongs to a trial.
    pub(super) granted: Option<(Arc<TenantOutgoing>, bool)>,
    pub(super) requests: usize,
    /// The request that is sent next.
    pub(super) next: Option<(Sending, FaultLog)>,
}

/// Tells the plugin's author why a request failed.
#[derive(Clone)]
pub(super) struct FaultLog {
    /// The destination, for texts.
    pub(super) to: String,
    pub(super) log: Arc<Mutex<Log>>,
}

impl Http {
    pub(super) fn granted(grant: &Grant<'_>) -> Self {
        let granted = grant.systems.and_then(|systems| Some((systems.outgoing?, systems.is_trial)));
        let granted = granted.map(|(outgoing, is_trial)| (outgoing.clone(), is_trial));
        Self { granted, requests: 0, next: None }
    }

    /// The call has ended.
    pub(super) fn end(&mut self) {
        self.granted = None;
        self.next = None;
    }

    /// Whether the call has sent requests.
    pub(super) fn has_sent(&self) -> bool {
        self.requests > 0
    }
}

impl FaultLog {
    /// Write a line of the plugin's log.
    pub(super) fn warn(&self, why: impl std::fmt::Display) {
        let text = format!("the request to {} failed: {why}", self.to);
        self.log.lock().line(Level::Warn, &text);
    }

    /// The fault, which is told, as the library has it.
    fn error(&self, fault: OutgoingFault) -> Error {
        self.warn(&fault);
        match fault {
            OutgoingFault::NameNotFound => {
                Error::DnsError { rcode: Some(fault.to_string()), info_code: None }
            }
            OutgoingFault::Prohibited(_) => Error::DestinationIpProhibited,
            OutgoingFault::Refused => Error::ConnectionRefused,
            OutgoingFault::Unreachable => Error::DestinationUnavailable,
            OutgoingFault::ConnectTimeout(_) => Error::ConnectionTimeout,
            OutgoingFault::Certificate(_) => Error::TlsCertificateError,
            OutgoingFault::Tls(_) => Error::TlsProtocolError,
            OutgoingFault::TooLate => Error::HttpResponseTimeout,
            OutgoingFault::Ended => Error::HttpResponseIncomplete,
            OutgoingFault::Garbage | OutgoingFault::Unfinished => Error::HttpProtocolError,
            OutgoingFault::HeadTooLarge => Error::HttpResponseHeaderSectionSize(None),
            OutgoingFault::BodyTooLarge => Error::HttpResponseBodySize(None),
            OutgoingFault::RequestTooLarge => Error::HttpRequestBodySize(None),
            OutgoingFault::TooMany => Error::ConnectionLimitReached,
            OutgoingFault::OverBudget(_) | OutgoingFault::Unavailable => {
                Error::InternalError(Some(fault.to_string()))
            }
        }
    }
}

/// Work of the library's that may fail after the answer's head is there.
type Work = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// An answer, as the library takes it.
type SendResult = Result<(Response<WasiBody>, Work), Error>;

impl WasiHttpHooks for Http {
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        WRITTEN_BYTES_MAX
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Work,
    ) -> Box<dyn Future<Output = SendResult> + Send> {
        let Some((sending, fault_log)) = self.next.take() else {
            return Box::new(async { Err(Error::HttpRequestDenied) });
        };
        let options = options.unwrap_or_default();
        let timeouts = Timeouts {
            connect: options.connect_timeout,
            first_byte: options.first_byte_timeout,
            between_bytes: options.between_bytes_timeout,
        };
        // The only error of a body that a guest writes.
        let request = request.map(|body| -> OutgoingBody {
            body.map_err(|_| OutgoingFault::Unfinished).boxed_unsync()
        });
        let work = async move {
            let response = sending.send(request, timeouts).await;
            let response = response.map_err(|fault| fault_log.error(fault))?;
            let response = response.map(|body| -> WasiBody {
                body.map_err(move |fault| fault_log.error(fault)).boxed_unsync()
            });
            Ok((response, Box::new(std::future::ready(Ok(()))) as Work))
        };
        Box::new(work.in_current_span())
    }
}
