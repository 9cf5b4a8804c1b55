//! `GET /admin/v1/tenants/{tenant}/pipelines/{pipeline}/captured`: the real requests that a
//! pipeline has kept on this server, as samples that expect what their clients got.
//!
//! Requests of clients are for those who may change the pipeline, not for those who only read.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gristmill_core::Digest;
use gristmill_sandbox::Request;
use gristmill_snapshot::{Captured as One, CapturedAnswer, Pipeline};
use gristmill_state::{Expectation, Sample, SampleRequest, StateError};
use gristmill_transport::{Allowed, Problem};
use http::Method;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::query::none;
use super::{Answering, Asked, Resource, name};
use crate::answer::AdminAnswer;
use crate::operation::Operation;
use crate::permission::Permission;

pub(crate) struct Captured {
    tenant: String,
    pipeline: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = CapturedRequests)]
struct CapturedDocument {
    items: Vec<CapturedItem>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = CapturedRequest)]
struct CapturedItem {
    at_ms: u64,
    request_id: String,
    sample: Sample,
}

impl Captured {
    pub(crate) fn new(tenant: &str, pipeline: &str) -> Self {
        Self { tenant: tenant.into(), pipeline: pipeline.into() }
    }
}

impl Captured {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let path = "tenants/{tenant}/pipelines/{pipeline}/captured";
        let get = Operation::get(path, "Read the requests that a pipeline has kept on this server");
        vec![get.answers::<CapturedDocument>().finds()]
    }
}

impl Resource for Captured {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::ChangeTenant(&self.tenant)
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            none(received.query)?;
            let (tenant, pipeline) =
                (name("tenant", &self.tenant)?, name("pipeline", &self.pipeline)?);
            let kept = {
                let serving = state.control.serving();
                let entry = serving.snapshot.tenants.get(&tenant);
                let entry = entry.ok_or_else(|| StateError::not_found("tenant", &tenant))?;
                let state = entry.pipelines.get(&pipeline);
                match state.ok_or_else(|| StateError::not_found("pipeline", &pipeline))? {
                    Pipeline::Ready(route) => route.capture.as_ref().map(|capture| capture.kept()),
                    Pipeline::Unavailable(_) => None,
                }
            };
            let kept = kept.unwrap_or_default();
            let items = kept.iter().enumerate().map(|(index, one)| item(index + 1, one));
            AdminAnswer::of(&CapturedDocument { items: items.collect::<Result<_, _>>()? })
        })
    }
}

fn item(number: usize, one: &One) -> Result<CapturedItem, Problem> {
    let since = one.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let sample = Sample {
        name: name("name", &format!("captured-{number}"))?,
        request: request(&one.request),
        expect: expectation(&one.answer),
    };
    Ok(CapturedItem {
        at_ms: since.as_millis() as u64,
        request_id: one.request_id.to_string(),
        sample,
    })
}

/// The request of a sample that is the same to a plugin.
fn request(kept: &Request) -> SampleRequest {
    let Request { content_type, headers, query, body, .. } = kept;
    let encoded = query.iter().fold(String::new(), |mut text, (name, value)| {
        let separator = if text.is_empty() { "" } else { "&" };
        text.push_str(separator);
        text.extend(form_urlencoded::byte_serialize(name.as_bytes()));
        text.push('=');
        text.extend(form_urlencoded::byte_serialize(value.as_bytes()));
        text
    });
    let mut request = SampleRequest {
        query: (!encoded.is_empty()).then_some(encoded),
        // A sample has each header once; a plugin may have seen one several times.
        headers: headers.iter().cloned().collect::<BTreeMap<_, _>>(),
        ..SampleRequest::default()
    };
    let text = std::str::from_utf8(body).ok();
    let json = || serde_json::from_slice::<Value>(body).ok().filter(|json| !json.is_null());
    let usual = match content_type.as_deref() {
        Some("application/json") if json().is_some() => {
            request.json = json();
            Some("application/json")
        }
        Some("text/plain") if text.is_some() => {
            request.body = text.map(str::to_owned);
            Some("text/plain")
        }
        // Text of any type is kept as it came, because curl sends JSON as a form.
        _ if text.is_some_and(|text| !text.is_empty() && !text.contains('\0')) => {
            request.body = text.map(str::to_owned);
            None
        }
        _ => {
            request.base64 = (!body.is_empty()).then(|| STANDARD.encode(body));
            None
        }
    };
    request.content_type =
        content_type.clone().filter(|content_type| Some(content_type.as_str()) != usual);
    request
}

fn expectation(answer: &CapturedAnswer) -> Expectation {
    let (status, content_type, body) = match answer {
        CapturedAnswer::Failed(code) => {
            return Expectation { code: Some(code.as_str().to_owned()), ..Expectation::default() };
        }
        CapturedAnswer::Response { status, content_type, body } => (*status, content_type, body),
    };
    let json = serde_json::from_slice::<Value>(body).ok().filter(|json| !json.is_null());
    let text = std::str::from_utf8(body).ok().filter(|_| json.is_none());
    let is_bytes = json.is_none() && text.is_none();
    Expectation {
        status: Some(status),
        content_type: (!content_type.is_empty()).then(|| content_type.clone()),
        json,
        text: text.map(str::to_owned),
        body_sha256: is_bytes.then(|| Digest::of(body)),
        ..Expectation::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kept(content_type: &str, body: &[u8]) -> Request {
        let content_type = (!content_type.is_empty()).then(|| content_type.to_owned());
        Request { content_type, body: body.to_vec().into(), ..Request::default() }
    }

    #[test]
    fn a_request_is_written_as_people_write_it() {
        let as_json = |request: &Request| serde_json::to_value(super::request(request)).unwrap();
        let json = kept("application/json", b"{\"a\": 1}");
        assert_eq!(as_json(&json), json!({ "json": { "a": 1 } }));
        assert_eq!(as_json(&kept("text/plain", b"hello")), json!({ "body": "hello" }));
        let image = kept("image/png", &[0x89, 0x50]);
        let expected = json!({ "content_type": "image/png", "base64": "iVA=" });
        assert_eq!(as_json(&image), expected);
        let broken = kept("application/json", b"{");
        assert_eq!(as_json(&broken), json!({ "content_type": "application/json", "body": "{" }));
        let form = kept("application/x-www-form-urlencoded", b"{\"a\": 1}");
        let expected =
            json!({ "content_type": "application/x-www-form-urlencoded", "body": "{\"a\": 1}" });
        assert_eq!(as_json(&form), expected);
        let mut asked = kept("", b"");
        asked.query = vec![("a b".into(), "ä&=".into()), ("c".into(), String::new())];
        assert_eq!(as_json(&asked), json!({ "query": "a+b=%C3%A4%26%3D&c=" }));
    }

    #[test]
    fn an_answer_is_expected_as_what_it_is() {
        let of = |content_type: &str, body: &[u8]| {
            let (content_type, body) = (content_type.to_owned(), body.to_vec().into());
            let answer = CapturedAnswer::Response { status: 201, content_type, body };
            serde_json::to_value(expectation(&answer)).unwrap()
        };
        let expected = json!({ "status": 201, "content_type": "application/json", "json": [1] });
        assert_eq!(of("application/json", b"[1]"), expected);
        assert_eq!(of("", b"x"), json!({ "status": 201, "text": "x" }));
        assert!(of("", &[0xff])["body_sha256"].is_string());
        let failed = CapturedAnswer::Failed(gristmill_core::ErrorCode::PluginTrapped);
        let expected = json!({ "code": "plugin_trapped" });
        assert_eq!(serde_json::to_value(expectation(&failed)).unwrap(), expected);
    }
}
