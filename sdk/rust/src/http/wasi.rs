//! A request over `wasi:http`.

use std::time::Duration;

use self::bindings::wasi::http::outgoing_handler;
use self::bindings::wasi::http::types::{
    ErrorCode, Fields, HeaderError, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    RequestOptions, Scheme, http_error_code,
};
use self::bindings::wasi::io::streams::StreamError;
use super::{HttpError, HttpRequest, HttpResponse, UrlParts};

mod bindings {
    #![allow(missing_docs, clippy::all)]

    wit_bindgen::generate!({ path: "src/http/wasi.wit", world: "requests", generate_all });
}

/// The bytes of a body that are written at a time: the most that the function takes.
const WRITTEN_BYTES: usize = 4096;

/// The bytes of an answer that are read at a time.
const READ_BYTES: u64 = 64 << 10;

pub(super) fn send(asked: &HttpRequest, target: &UrlParts<'_>) -> Result<HttpResponse, HttpError> {
    let request = outgoing(asked, target)?;
    let body = match asked.body.is_empty() {
        true => None,
        false => Some(request.body().map_err(|()| invalid("it has no place for a body"))?),
    };
    let answer = outgoing_handler::handle(request, asked.timeout.map(options));
    let answer = answer.map_err(|code| error_of(&code))?;
    if let Some(body) = body {
        write(body, &asked.body)?;
    }
    answer.subscribe().block();
    let response = match answer.get() {
        Some(Ok(response)) => response.map_err(|code| error_of(&code))?,
        _ => return Err(HttpError::Unavailable("the host gave no answer".into())),
    };
    // It must be dropped after its answer's parts.
    let read = read(&response);
    drop((response, answer));
    read
}

fn outgoing(asked: &HttpRequest, target: &UrlParts<'_>) -> Result<OutgoingRequest, HttpError> {
    let mut headers = asked.headers.clone();
    let has_length = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    if !asked.body.is_empty() && !has_length {
        headers.push(("content-length".into(), asked.body.len().to_string().into_bytes()));
    }
    let headers = Fields::from_list(&headers).map_err(|error| match error {
        HeaderError::Forbidden => invalid("a header is one that the host sets itself"),
        _ => invalid("a header has a name or a value that cannot be sent"),
    })?;
    let request = OutgoingRequest::new(headers);
    let scheme = if target.is_tls { Scheme::Https } else { Scheme::Http };
    request
        .set_method(&method(&asked.method))
        .and_then(|()| request.set_scheme(Some(&scheme)))
        .and_then(|()| request.set_authority(Some(target.authority)))
        .and_then(|()| request.set_path_with_query(Some(&target.path)))
        .map_err(|()| invalid(&format!("{} {:?} cannot be sent", asked.method, asked.url)))?;
    Ok(request)
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        "PATCH" => Method::Patch,
        name => Method::Other(name.to_owned()),
    }
}

fn options(timeout: Duration) -> RequestOptions {
    let nanos = Some(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
    let options = RequestOptions::new();
    // The host takes them all.
    let _ = options.set_connect_timeout(nanos);
    let _ = options.set_first_byte_timeout(nanos);
    let _ = options.set_between_bytes_timeout(nanos);
    options
}

fn write(body: OutgoingBody, bytes: &[u8]) -> Result<(), HttpError> {
    if let Ok(stream) = body.write() {
        // A service may answer before it has read all: the answer says what went wrong.
        let _ =
            bytes.chunks(WRITTEN_BYTES).try_for_each(|part| stream.blocking_write_and_flush(part));
    }
    match OutgoingBody::finish(body, None) {
        // Not all was written.
        Ok(()) | Err(ErrorCode::HttpRequestBodySize(_)) => Ok(()),
        Err(code) => Err(error_of(&code)),
    }
}

fn read(response: &IncomingResponse) -> Result<HttpResponse, HttpError> {
    let status = response.status();
    let headers = response.headers().entries();
    let mut bytes = Vec::new();
    let no_body = || HttpError::Unavailable("the answer's body was read before".into());
    let body = response.consume().map_err(|()| no_body())?;
    let stream = body.stream().map_err(|()| no_body())?;
    loop {
        match stream.blocking_read(READ_BYTES) {
            Ok(part) => bytes.extend(part),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(error)) => {
                return Err(match http_error_code(&error) {
                    Some(code) => error_of(&code),
                    None => HttpError::Unavailable(error.to_debug_string()),
                });
            }
        }
    }
    Ok(HttpResponse { status, headers, body: bytes })
}

fn invalid(text: &str) -> HttpError {
    HttpError::InvalidArgument(text.to_owned())
}

/// The error of a code. The plugin's log has the host's own words.
fn error_of(code: &ErrorCode) -> HttpError {
    match code {
        ErrorCode::HttpRequestDenied => HttpError::NotGranted(
            "the host does not send this request: the plugin's log says why".into(),
        ),
        ErrorCode::DestinationIpProhibited => HttpError::NotGranted(
            "the host has no public address: the plugin's log says what would grant it".into(),
        ),
        ErrorCode::HttpRequestUriInvalid | ErrorCode::HttpRequestMethodInvalid => {
            invalid(&format!("the request cannot be sent: {code:?}"))
        }
        code => HttpError::Unavailable(format!("no whole answer: {code:?}")),
    }
}
