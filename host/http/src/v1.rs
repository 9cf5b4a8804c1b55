//! `/v1`: `POST /v1/{tenant}/infer[/{pipeline}]`, `GET /v1/{tenant}`, `GET /v1/{tenant}/try`, and
//! the server's health.

mod describe;
mod try_page;

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{Deadline, Stage};
use gristmill_serve::edge::{answer_from_plugin, request_for_plugin};
use gristmill_serve::{
    Chosen, PipelineAnswer, TrialPart, Variant, Work, admitted, choose, find_pipeline, readiness,
    request_span, run_variant,
};
use gristmill_snapshot::Route;
use gristmill_transport::body::{Answer, ReadPlan};
use gristmill_transport::{Allowed, Checked, Problem};
use http::Response;
use serde_json::{Value, json};
use tracing::Instrument;

use crate::answers::{self, key_of};
use crate::call::Call;
use crate::inference::Inference;
use crate::plugin_error::problem_of;

/// The resource at a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Path<'a> {
    Live,
    Ready,
    /// `/v1/{tenant}`.
    Tenant(&'a str),
    /// `/v1/{tenant}/try`.
    TryPage(&'a str),
    /// `/v1/{tenant}/infer[/{pipeline}]`.
    Infer {
        tenant: &'a str,
        pipeline: Option<&'a str>,
    },
}

/// Answer one request.
pub(crate) async fn answer(
    inference: &Inference,
    path: Path<'_>,
    mut call: Call<'_>,
) -> Result<Answer, Problem> {
    let allowed = match path {
        Path::Infer { .. } => Allowed::Post,
        _ => Allowed::Get,
    };
    let (snapshot, head) = (call.snapshot, call.head);
    if let Checked::Options = allowed.check(&head.method)? {
        return Ok(allowed.options());
    }
    let key = || key_of(&head.headers, inference.gate(), snapshot);
    match path {
        Path::Live => Ok(answers::live()),
        Path::Ready => {
            let unavailable = readiness(snapshot, inference.is_shutting_down())?;
            let mut document = json!({ "status": "ready" });
            if !unavailable.is_none() {
                document["unavailable"] = serde_json::to_value(unavailable).unwrap_or(Value::Null);
            }
            // It serves all the same.
            if let Some(trouble) = inference.store_trouble() {
                document["store"] = trouble.into();
            }
            Ok(answers::json(&document))
        }
        Path::Tenant(name) => {
            let tenant = admitted(snapshot, name, key())?;
            call.admitted(Some(tenant))?;
            Ok(describe::describe(tenant, snapshot.release))
        }
        Path::TryPage(name) => {
            let tenant = admitted(snapshot, name, key())?;
            call.admitted(Some(tenant))?;
            Ok(try_page::page())
        }
        Path::Infer { tenant, pipeline } => {
            let tenant = admitted(snapshot, tenant, key())?;
            call.admitted(Some(tenant))?;
            let Chosen { route, part } = choose(find_pipeline(tenant, pipeline)?, |name| {
                Some(head.headers.get(name)?.as_bytes())
            });
            call.context.variant = part.as_ref().map(|part| part.variant);
            let (variant, trace_id) = (call.context.variant, call.context.trace_id());
            let variant = variant.map(Variant::as_str);
            let span = request_span(&route, &call.context.id, variant, trace_id.as_deref());
            infer(inference, route, part, call).instrument(span).await
        }
    }
}

/// Read the body, run the pipeline, and make the answer of the plugin's response.
async fn infer(
    inference: &Inference,
    route: Arc<Route>,
    part: Option<TrialPart>,
    mut call: Call<'_>,
) -> Result<Answer, Problem> {
    let arrived = call.context.receipt.record().arrived;
    let deadline = Deadline::at(arrived + route.limits.timeout);
    let work = Work {
        is_traced: call.context.is_sampled(),
        ..Work::new(route, call.context.id.clone(), deadline)
    };
    let route = &work.route;
    let budget = &route.quota.bytes;
    let plan = ReadPlan {
        bytes: route.limits.body_bytes,
        deadline,
        budget: Some(budget),
        aligned_at: 0,
        pool: inference.pool(),
    };
    let body = call.read(inference, plan, Some(&route.tenant)).await?;
    let Call { head, context, .. } = call;
    let request = request_for_plugin(head, body).await?;
    context.receipt.read();
    let answer = run_variant(&work, request, part, &mut context.receipt).await;
    let PipelineAnswer { outcome, lines } = answer;
    let response = outcome.map_err(|error| problem_of(error, route, &lines));
    if context.is_sampled() {
        context.lines = lines;
    }
    let response = response?;
    let bytes_max = route.limits.plugin.response_bytes;
    let answer = answer_from_plugin(response, bytes_max, budget, &route.redirects);
    answer.inspect_err(|problem| {
        let plugin = route.program.source_of(Stage::Post).plugin.as_str();
        tracing::warn!(plugin, error = problem.detail, "request failed");
    })
}

/// An error as a problem document. Its member `error` is for clients that are made for OpenAI's
/// API: they look for the message there, and some show nothing else.
pub(crate) fn error_answer(mut problem: Problem, request_id: &str) -> Response<Bytes> {
    let code = problem.code.as_str();
    let error = json!({ "message": problem.detail, "type": code, "param": null, "code": code });
    problem.members.insert("error".into(), error);
    problem.into_response(request_id)
}
