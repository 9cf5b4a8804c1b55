//! The answer of a resource: a JSON document, a file, or events.

use bytes::Bytes;
use futures_util::stream::BoxStream;
use gristmill_control::{ControlError, Outgoing, Published};
use gristmill_core::{Digest, ErrorCode, HeldBytes};
use gristmill_state::{Conditions, DigestText, Power};
use gristmill_transport::Problem;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, LINK};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::body::AdminBody;
use crate::wait::WaitedDocument;

/// The outcome of a request to a resource.
pub(crate) type Outcome = Result<AdminAnswer, Problem>;

/// A JSON document or a file, and the parts of it that the log names.
pub(crate) struct AdminAnswer {
    body: AdminBody,
    status: StatusCode,
    /// The tag of the thing that was read or put.
    tag: Option<Digest>,
    pub(crate) noted: Noted,
    headers: HeaderMap,
}

/// The parts of an answer that the log names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    pub(crate) release: Option<u64>,
    pub(crate) digest: Option<Digest>,
}

/// The answer to a change.
#[derive(Serialize, ToSchema)]
pub(crate) struct Released {
    /// The number of the release that serves now.
    release: u64,
    /// The digest of the file, if the change put one.
    #[schema(value_type = Option<DigestText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    /// What may do more or less than before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    power: Vec<Power>,
}

/// The same after waiting for servers.
#[derive(Serialize)]
struct Waited {
    #[serde(flatten)]
    document: Map<String, Value>,
    replicas: WaitedDocument,
}

impl AdminAnswer {
    /// An answer without a tag, and without parts for the log.
    pub(crate) fn of(document: &impl Serialize) -> Outcome {
        let body = serde_json::to_vec(document);
        let mut body =
            body.map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
        // So that it reads well in a terminal.
        body.push(b'\n');
        let json = HeaderValue::from_static("application/json");
        Ok(Self::with(Bytes::from(body).into(), json))
    }

    /// The answer with a document that has this tag.
    pub(crate) fn tagged(document: &impl Serialize, tag: Digest) -> Outcome {
        Ok(Self { tag: Some(tag), ..Self::of(document)? })
    }

    /// An answer whose tag is the digest of its body.
    pub(crate) fn digested(document: &impl Serialize) -> Outcome {
        let answer = Self::of(document)?;
        let tag = answer.body.whole().map(|whole| Digest::of(whole));
        Ok(Self { tag, ..answer })
    }

    /// The answer with a page of this media type, whose tag is its digest.
    pub(crate) fn page(page: &Bytes, media_type: &'static str) -> Self {
        let answer = Self::with(page.clone().into(), HeaderValue::from_static(media_type));
        Self { tag: Some(Digest::of(page)), ..answer }
    }

    /// The answer with a text of this media type, which has no tag.
    pub(crate) fn text(text: Bytes, media_type: &'static str) -> Self {
        Self::with(text.into(), HeaderValue::from_static(media_type))
    }

    /// The answer with an uploaded file.
    pub(crate) fn file(file: Outgoing, media_type: &'static str) -> Self {
        let digest = file.digest();
        let noted = Noted { release: None, digest: Some(digest) };
        let answer = Self::with(AdminBody::file(file), HeaderValue::from_static(media_type));
        Self { tag: Some(digest), noted, ..answer }
    }

    /// The answer with these events.
    pub(crate) fn events(events: BoxStream<'static, Bytes>, media_type: &'static str) -> Self {
        Self::with(AdminBody::events(events), HeaderValue::from_static(media_type))
    }

    fn with(body: AdminBody, media_type: HeaderValue) -> Self {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, media_type)]);
        let (status, noted) = (StatusCode::OK, Noted::default());
        Self { body, status, tag: None, noted, headers }
    }

    /// The answer to a change that made a release. If the change put a file, `digest` is the
    /// file's.
    pub(crate) fn released(published: Published, digest: Option<Digest>) -> Outcome {
        let Published { release, tag, power, .. } = published;
        let noted = Noted { release: Some(release), digest };
        Self::changed(&Released { release, digest, power }, tag, noted)
    }

    /// The answer to a change that gave this tag to what it changed. The log names the parts in
    /// `noted`.
    pub(crate) fn changed(document: &impl Serialize, tag: Option<Digest>, noted: Noted) -> Outcome {
        Ok(Self { tag, noted, ..Self::of(document)? })
    }

    /// The same with the link to the next page.
    pub(crate) fn linked(self, link: HeaderValue) -> Self {
        self.with_header(LINK, link)
    }

    /// The same with one more header.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The same, after waiting for the servers that `document` is about.
    pub(crate) fn waited(mut self, replicas: WaitedDocument, is_complete: bool) -> Outcome {
        let failed =
            |error: serde_json::Error| Problem::new(ErrorCode::Internal, error.to_string());
        if let Some(whole) = self.body.whole() {
            let document = serde_json::from_slice(whole).map_err(failed)?;
            self.body = Self::of(&Waited { document, replicas })?.body;
        }
        if !is_complete {
            self.status = StatusCode::ACCEPTED;
        }
        Ok(self)
    }

    /// The same, which counts against the budget of `held` until it is sent.
    pub(crate) fn counted(mut self, held: HeldBytes) -> Self {
        if let Some(whole) = self.body.whole() {
            self.body = held.attach_to(whole.clone()).into();
        }
        self
    }

    /// The same, which nothing on the way to the client may keep.
    pub(crate) fn unkept(self) -> Self {
        self.with_header(CACHE_CONTROL, HeaderValue::from_static("no-store"))
    }

    /// The HTTP response.
    pub(crate) fn into_response(self) -> Response<AdminBody> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        add_tag(self.tag, response.headers_mut());
        response
    }

    /// The HTTP response for a reader with these conditions. `path` is the path of the thing.
    ///
    /// # Errors
    /// `If-Match` does not hold.
    pub(crate) fn for_reader(
        self,
        conditions: &Conditions,
        path: &str,
    ) -> Result<Response<AdminBody>, Problem> {
        let is_known = match self.tag {
            Some(tag) => conditions.check_read(path, tag).map_err(ControlError::from)?,
            None => false,
        };
        Ok(if is_known { self.into_not_modified() } else { self.into_response() })
    }

    fn into_not_modified(self) -> Response<AdminBody> {
        let mut response = Response::new(Bytes::new().into());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        add_tag(self.tag, response.headers_mut());
        response
    }
}

fn add_tag(tag: Option<Digest>, headers: &mut HeaderMap) {
    let value = tag.and_then(|tag| HeaderValue::try_from(format!("\"{}\"", tag.hex())).ok());
    headers.extend(value.map(|value| (ETAG, value)));
}
