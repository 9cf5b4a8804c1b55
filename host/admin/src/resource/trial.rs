//! `POST /admin/v1/tenants/{tenant}/pipelines/{pipeline}/try`: a request through a pipeline, with
//! all that is known of it. The body and the content type are those of the request.
//!
//! The answer is a document, whatever the plugin answered: nothing that a tenant made is sent from
//! the origin of the admin plane as what it claims to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gristmill_core::ErrorCode;
use gristmill_snapshot::{Pipeline, Route};
use gristmill_state::{SampleAnswer, SampleFailure, StateError};
use gristmill_transport::{Allowed, Problem};
use http::Method;
use http::header::CONTENT_TYPE;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use utoipa::ToSchema;

use super::plugin_logs::LineDocument;
use super::query::{invalid, parameters};
use super::receipt::{ReceiptDocument, stages_us};
use super::{Answering, Asked, Resource, name};
use crate::answer::AdminAnswer;
use crate::operation::Operation;
use crate::permission::Permission;
use crate::receive::{Received, drop_some};
use crate::state::AdminState;
use crate::trials::{self, Tried};

/// Memory that an answer takes for each byte of it: itself, and Base64 twice, alone and in the
/// document.
const ANSWER_MEMORY: usize = 4;

pub(crate) struct Trial {
    tenant: String,
    pipeline: String,
}

/// A request that was tried. It has a body, or the code of a failure.
#[derive(Serialize, ToSchema)]
#[schema(as = TriedRequest)]
struct TriedDocument<'a> {
    /// The status that a client would get.
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
    /// The body, as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    /// The plugin's own words, which a client does not get.
    #[serde(skip_serializing_if = "Option::is_none")]
    internal: Option<&'a str>,
    /// From its arrival to its answer.
    took_us: u64,
    /// The time in each stage that it reached, in microseconds.
    #[schema(value_type = BTreeMap<String, u64>)]
    stages_us: BTreeMap<&'static str, u64>,
    receipt: ReceiptDocument,
    /// What its plugins logged.
    lines: Vec<LineDocument<'a>>,
}

impl Trial {
    pub(crate) fn new(tenant: &str, pipeline: &str) -> Self {
        Self { tenant: tenant.into(), pipeline: pipeline.into() }
    }

    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let summary = "Run a request through a pipeline, and see all that comes of it";
        let operation = Operation::post("tenants/{tenant}/pipelines/{pipeline}/try", summary)
            .about(
                "The body and the content type are those of the request. It is charged to the \
                 tenant and counts against its quota, as that of a client.",
            )
            .takes_bytes()
            .text_like("query", "^[!$-;=?-~]*$", "The query of the request, as in a URL")
            .problems(&[ErrorCode::Conflict, ErrorCode::TenantBusy]);
        vec![operation.answers::<TriedDocument<'_>>().finds()]
    }

    /// The pipeline, which is ready.
    fn route(&self, state: &AdminState) -> Result<Arc<Route>, Problem> {
        let (tenant, pipeline) = (name("tenant", &self.tenant)?, name("pipeline", &self.pipeline)?);
        let serving = state.control.serving();
        let entry = serving.snapshot.tenants.get(&tenant);
        let entry = entry.ok_or_else(|| StateError::not_found("tenant", &tenant))?;
        let found = entry.pipelines.get(&pipeline);
        match found.ok_or_else(|| StateError::not_found("pipeline", &pipeline))? {
            Pipeline::Ready(route) => Ok(route.clone()),
            Pipeline::Unavailable(why) => {
                let detail = format!("the pipeline {:?} does not serve: {why}", self.pipeline);
                Err(Problem::new(ErrorCode::Conflict, detail))
            }
        }
    }

    /// The pipeline, the content type and the query of the request.
    fn asked(
        &self,
        state: &AdminState,
        received: &Received<'_>,
    ) -> Result<(Arc<Route>, Option<String>, String), Problem> {
        let [query] = parameters(["query"], received.query)?;
        let query = percent_decode_str(query.unwrap_or_default()).decode_utf8();
        let query = query.map_err(|_| invalid("query is not UTF-8".into()))?.into_owned();
        if !query.bytes().all(|byte| matches!(byte, 0x21 | 0x24..=0x3b | 0x3d | 0x3f..=0x7e)) {
            return Err(invalid(format!(
                "query is {query:?}, which cannot be sent in a URL: blanks and the like are written \
                 %20, in this call %2520"
            )));
        }
        let content_type = received.headers.get(CONTENT_TYPE).map(|value| value.to_str());
        let content_type = content_type.transpose();
        let content_type =
            content_type.map_err(|_| invalid("the content type is not ASCII".into()))?;
        Ok((self.route(state)?, content_type.map(str::to_owned), query))
    }
}

impl Resource for Trial {
    fn allowed(&self) -> Allowed {
        Allowed::Post
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::ChangeTenant(&self.tenant)
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let asked = self.asked(state, &received);
            let (route, content_type, query) = match asked {
                Ok(asked) => asked,
                Err(problem) => {
                    drop_some(received.body).await;
                    return Err(problem);
                }
            };
            let held = route.quota.bytes.hold(0);
            let body = received.body_for(&route, &state.limits).await?;
            let tried =
                state.trials.try_out(trials::Trial { route, content_type, query, body }).await;
            if let SampleAnswer::Response { body, .. } = &tried.answer {
                held.try_add(ANSWER_MEMORY * body.len())?;
            }
            Ok(AdminAnswer::of(&TriedDocument::of(&tried))?.unkept().counted(held))
        })
    }
}

impl<'a> TriedDocument<'a> {
    fn of(tried: &'a Tried) -> Self {
        let Tried { answer, took, stages, charge, batch_rows, batch_tenants, lines } = tried;
        let empty = Self {
            status: 0,
            content_type: None,
            base64: None,
            code: None,
            detail: None,
            internal: None,
            took_us: took.as_micros() as u64,
            stages_us: stages_us(stages),
            receipt: ReceiptDocument::of(charge, *batch_rows, *batch_tenants),
            lines: lines.iter().map(LineDocument::of).collect(),
        };
        match answer {
            SampleAnswer::Response { status, content_type, body } => Self {
                status: *status,
                content_type: (!content_type.is_empty()).then_some(content_type.as_str()),
                base64: Some(STANDARD.encode(body)),
                ..empty
            },
            SampleAnswer::Failed(SampleFailure { status, code, detail, internal }) => Self {
                status: *status,
                code: Some(code.as_str()),
                detail: Some(detail.as_str()),
                internal: internal.as_deref(),
                ..empty
            },
        }
    }
}
