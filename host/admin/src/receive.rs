//! Reading files and JSON documents from clients of the admin plane. Each is bounded in bytes, in
//! its total time, and in the time without any data.

use std::fmt::Display;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use gristmill_control::{ArrivingPart, ControlError, Received as File};
use gristmill_core::{ErrorCode, NotJson};
use gristmill_snapshot::Route;
use gristmill_state::{ChangeOptions, Subject};
use gristmill_transport::Problem;
use gristmill_transport::body::Lent;
use http::HeaderMap;
use http_body_util::BodyExt;
use hyper::body::Body;
use serde_json::error::Category;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::caller::Caller;
use crate::state::{AdminState, UploadLimits};

/// The largest JSON document.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// The largest plugin. Models can be larger, and only operators upload them.
const PLUGIN_BYTES_MAX: usize = 1 << 30;

/// The longest time for a JSON document to arrive.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest time for which a client may send nothing.
const STALL: Duration = Duration::from_secs(30);

/// Maximum bytes of a refused body that are read and dropped.
const DROPPED_BYTES_MAX: usize = 8 << 20;

/// The longest time for which a refused body is read and dropped.
const DROPPED_TIME: Duration = Duration::from_secs(2);

/// Bounds on reading a body.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    bytes: usize,
    /// The bytes that count beside those of the body.
    before: usize,
    /// The name of the limit on its bytes, for the error.
    limit: &'static str,
    timeout: Duration,
}

/// The query, the headers, the caller, the options of a change and the unread body of an
/// authorised request.
pub(crate) struct Received<'a> {
    pub(crate) query: Option<&'a str>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) caller: &'a Caller,
    pub(crate) options: ChangeOptions,
    pub(crate) body: Lent,
}

impl Received<'_> {
    /// Read an uploaded file, and write it to the store as it arrives. A file whose conditions do
    /// not hold now is refused before it is read. If the path does not name a `subject`, the file
    /// is read all the same, so that the client sees the answer.
    ///
    /// # Errors
    /// The body is too large, does not arrive in time, cannot be read, or cannot be written; or the
    /// conditions do not hold.
    pub(crate) async fn upload(
        self,
        state: &AdminState,
        subject: Option<Subject>,
    ) -> Result<File, Problem> {
        let asset_bytes_max = state.control.asset_limits().bytes_max;
        let asset = (usize::try_from(asset_bytes_max).unwrap_or(usize::MAX), "asset_bytes_max");
        let plugin = (PLUGIN_BYTES_MAX, "the limit of plugins");
        let limit_of_kind = match &subject {
            Some(Subject::Plugin { .. }) => Some(plugin),
            Some(Subject::Asset { .. }) => Some(asset),
            // Only a file of an operator can be a model.
            _ if !self.caller.token_scope().is_server() => Some(plugin.max(asset)),
            _ => None,
        };
        let checked =
            subject.map(|subject| state.control.check(&subject, &self.options.conditions));
        if let Some(Err(unmet)) = checked {
            drop_some(self.body).await;
            return Err(unmet.into());
        }
        let mut bounds = Bounds::of_upload(&state.limits);
        if let Some((bytes, limit)) = limit_of_kind
            && bounds.bytes > bytes
        {
            bounds = Bounds { bytes, limit, ..bounds };
        }
        let mut pieces = Pieces::of(self.body, bounds).await?;
        let mut incoming = state.control.receive().await?;
        let failed = |error| ControlError::from(error).logged();
        while let Some(piece) = pieces.next().await? {
            incoming = incoming.write(piece).await.map_err(failed)?;
        }
        Ok(incoming.finish().await.map_err(failed)?)
    }

    /// The header `Upload-Offset`.
    ///
    /// # Errors
    /// It is missing or is not a number.
    pub(crate) fn upload_offset(&self) -> Result<u64, Problem> {
        let value = self.headers.get("upload-offset").map(|value| value.to_str().unwrap_or("?"));
        let offset = value.and_then(|value| value.parse::<i64>().ok());
        let offset = offset.and_then(|offset| u64::try_from(offset).ok());
        offset.ok_or_else(|| {
            let is = value.map_or("missing".into(), |value| format!("{value:?}"));
            let detail = format!("Upload-Offset is {is}: must be the bytes before this part");
            Problem::new(ErrorCode::InvalidRequest, detail)
        })
    }

    /// The header `Upload-Complete`: whether this part is the last one.
    ///
    /// # Errors
    /// It is missing, or neither `?0` nor `?1`.
    pub(crate) fn upload_complete(&self) -> Result<bool, Problem> {
        match self.headers.get("upload-complete").map(|value| value.as_bytes()) {
            Some(b"?1") => Ok(true),
            Some(b"?0") => Ok(false),
            complete => {
                let is = if complete.is_some() { "something else" } else { "missing" };
                let detail =
                    format!("Upload-Complete is {is}: must be ?0, or ?1 for the last part");
                Err(Problem::new(ErrorCode::InvalidRequest, detail))
            }
        }
    }

    /// The body as a part of a file.
    pub(crate) fn upload_part(self, limits: &UploadLimits) -> UploadPart {
        UploadPart { body: self.body, limits: *limits }
    }

    /// Read a JSON object. The media type that the request names does not matter.
    ///
    /// # Errors
    /// The body is too large, does not arrive in time, or is not a JSON object.
    pub(crate) async fn document(
        self,
        limits: &UploadLimits,
    ) -> Result<Map<String, Value>, Problem> {
        let bounds = Bounds {
            bytes: DOCUMENT_BYTES_MAX.min(limits.upload_bytes_max),
            before: 0,
            limit: "the limit of JSON documents",
            timeout: DOCUMENT_TIMEOUT.min(limits.upload_timeout),
        };
        parsed(&read(self.body, bounds).await?)
    }

    /// Read the body of a request that is tried. Each piece counts against the budget of the
    /// pipeline's tenant before it is kept.
    ///
    /// # Errors
    /// The body is too large, does not arrive in time, cannot be read, or is over the budget.
    pub(crate) async fn body_for(
        self,
        route: &Route,
        limits: &UploadLimits,
    ) -> Result<Bytes, Problem> {
        let bounds = Bounds {
            bytes: route.limits.body_bytes,
            before: 0,
            limit: "the pipeline's limit body_bytes",
            timeout: limits.upload_timeout,
        };
        let held = route.quota.bytes.hold(0);
        let mut pieces = Pieces::of(self.body, bounds).await?;
        let mut read = BytesMut::new();
        while let Some(piece) = pieces.next().await? {
            if let Err(over) = held.try_add(piece.len()) {
                drop_some(pieces.body).await;
                return Err(over.into());
            }
            read.extend_from_slice(&piece);
        }
        Ok(held.attach_to(read.freeze()))
    }
}

/// The unread body of a part of a file.
pub(crate) struct UploadPart {
    body: Lent,
    limits: UploadLimits,
}

impl UploadPart {
    /// Read and drop a part of it, for a while.
    pub(crate) async fn drop_some(self) {
        drop_some(self.body).await;
    }

    /// Write it to `part` as it arrives.
    ///
    /// # Errors
    /// The file is too large with it, it does not arrive in time, cannot be read, or cannot be
    /// written.
    pub(crate) async fn write(self, part: &mut ArrivingPart) -> Result<(), Problem> {
        let before = usize::try_from(part.offset()).unwrap_or(usize::MAX);
        let bounds = Bounds { before, ..Bounds::of_upload(&self.limits) };
        let mut pieces = Pieces::of(self.body, bounds).await?;
        while let Some(piece) = pieces.next().await? {
            part.write(piece).await?;
        }
        Ok(())
    }
}

fn parsed(text: &[u8]) -> Result<Map<String, Value>, Problem> {
    let invalid = |detail: String| Problem::new(ErrorCode::InvalidRequest, detail);
    if text.is_empty() {
        return Err(invalid("the body is empty: a JSON object is needed".into()));
    }
    match serde_json::from_slice(text) {
        Ok(Value::Object(keys)) => Ok(keys),
        Ok(other) => {
            let kind = match other {
                Value::Array(_) => "a list",
                Value::String(_) => "a text",
                Value::Number(_) => "a number",
                _ => "true, false or null",
            };
            let detail = format!("the body is {kind}: a JSON object is needed");
            Err(Problem::new(ErrorCode::Unprocessable, detail))
        }
        Err(error) => Err(invalid(format!("the body is not JSON: {}", fault(text, &error)))),
    }
}

fn fault(text: &[u8], error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    match (NotJson::of(text, line, column), error.classify()) {
        (Some(NotJson::Float { token, .. }), _) => {
            format!("it has {token} at line {line}, column {column}: send a number in its place")
        }
        (Some(reason), _) => reason.to_string(),
        (None, Category::Eof) => format!("it ends too early at line {line}, column {column}"),
        (None, _) => format!("it has an error at line {line}, column {column}"),
    }
}

/// Read and drop a part of a refused body, for a while. Otherwise the connection of a client that
/// is still sending would be reset, and the client might not see the answer.
pub(crate) async fn drop_some(mut body: impl Body<Data = Bytes> + Unpin) {
    let reading = async {
        let mut left = DROPPED_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let len = frame.data_ref().map_or(0, Bytes::len);
            let Some(less) = left.checked_sub(len) else { break };
            left = less;
        }
    };
    let _ = tokio::time::timeout(DROPPED_TIME, reading).await;
}

/// Read all of a small body.
async fn read<B>(body: B, bounds: Bounds) -> Result<Bytes, Problem>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    let mut pieces = Pieces::of(body, bounds).await?;
    let mut read = BytesMut::new();
    while let Some(piece) = pieces.next().await? {
        read.extend_from_slice(&piece);
    }
    Ok(read.freeze())
}

/// A body that is read piece by piece, within its bounds.
struct Pieces<B> {
    body: B,
    bounds: Bounds,
    /// The time by which all of it must have arrived.
    until: Instant,
    /// The bytes that arrived so far.
    len: usize,
}

impl<B: Body<Data = Bytes, Error: Display> + Unpin> Pieces<B> {
    /// # Errors
    /// The body's length is over the limit.
    async fn of(body: B, bounds: Bounds) -> Result<Self, Problem> {
        if body.size_hint().lower() > bounds.left() as u64 {
            drop_some(body).await;
            return Err(bounds.too_large());
        }
        Ok(Self { body, bounds, until: Instant::now() + bounds.timeout, len: 0 })
    }

    /// The next piece. None at the body's end.
    ///
    /// # Errors
    /// The body is too large, does not arrive in time, or cannot be read.
    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let Self { body, bounds, until, len } = self;
        let late = |detail: String| Problem::new(ErrorCode::RequestTimeout, detail);
        loop {
            let stall = Instant::now() + STALL;
            let frame = match tokio::time::timeout_at(stall.min(*until), body.frame()).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    let detail = format!("the body could not be read: {error}");
                    return Err(Problem::new(ErrorCode::InvalidRequest, detail));
                }
                Err(_) if stall < *until => {
                    let stall = STALL.as_secs();
                    return Err(late(format!(
                        "no more of the body arrived for {stall} s, after {len} bytes"
                    )));
                }
                Err(_) => {
                    let timeout = bounds.timeout.as_secs();
                    return Err(late(format!(
                        "the body did not arrive within {timeout} s: only {len} bytes arrived"
                    )));
                }
            };
            let Ok(data) = frame.into_data() else { continue };
            *len += data.len();
            return match *len <= bounds.left() {
                true => Ok(Some(data)),
                false => Err(bounds.too_large()),
            };
        }
    }
}

impl Bounds {
    /// Those of an uploaded file.
    fn of_upload(limits: &UploadLimits) -> Self {
        let UploadLimits { upload_bytes_max, upload_timeout } = *limits;
        let (bytes, limit) = (upload_bytes_max, "upload_bytes_max");
        Self { bytes, before: 0, limit, timeout: upload_timeout }
    }

    /// Maximum bytes that the body may have.
    fn left(&self) -> usize {
        self.bytes.saturating_sub(self.before)
    }

    fn too_large(&self) -> Problem {
        let Self { bytes, limit, .. } = self;
        Problem::new(ErrorCode::BodyTooLarge, format!("the body is over {limit}, {bytes} bytes"))
    }
}

#[cfg(test)]
mod tests;
