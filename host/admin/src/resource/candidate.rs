//! `GET /admin/v1/tenants/{tenant}/pipelines/{pipeline}/candidate`: how a candidate fares on this
//! server; and `POST .../candidate/promote` and `.../candidate/abort`, which end it.

use std::time::UNIX_EPOCH;

use gristmill_control::Mismatch;
use gristmill_core::Name;
use gristmill_snapshot::{
    Difference, Evaluation, EvaluationReport, Pipeline, Route, ShadowTally, VariantTally,
};
use gristmill_state::{AskedChange, CandidateSpec, NameText, StateError};
use gristmill_transport::{Allowed, Problem};
use http::Method;
use serde::Serialize;
use utoipa::ToSchema;

use super::query::{SKIP_SAMPLES, flag, none};
use super::{Answering, Asked, Resource, name};
use crate::answer::{AdminAnswer, Released};
use crate::operation::Operation;
use crate::permission::Permission;
use crate::schemas::maybe;

/// The candidate of a pipeline.
pub(crate) struct Candidate(Of);

/// The end of a candidate.
pub(crate) struct CandidateEnd {
    of: Of,
    end: End,
}

/// What becomes of a candidate.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// It takes its pipeline's place.
    Promote,
    /// It goes.
    Abort,
}

/// A pipeline by its names.
struct Of {
    tenant: String,
    pipeline: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = CandidateReport)]
struct CandidateDocument<'a> {
    #[schema(value_type = NameText)]
    tenant: &'a Name,
    #[schema(value_type = NameText)]
    pipeline: &'a Name,
    /// `running`, `aborted`, `unavailable`, `ended` or `none`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// The candidate that is tried, as in the pipeline's document.
    #[schema(value_type = Option<CandidateSpec>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<&'a CandidateSpec>,
    #[schema(schema_with = maybe::<Counters>)]
    #[serde(flatten)]
    counters: Option<Counters>,
}

/// Of this server, since the release `since_release` or its start.
#[derive(Serialize, ToSchema)]
#[schema(as = CandidateCounters)]
struct Counters {
    since_release: u64,
    stable: VariantCounters,
    candidate: VariantCounters,
    shadow: ShadowCounters,
    differences: Vec<DifferenceDocument>,
}

#[derive(Serialize, ToSchema)]
struct VariantCounters {
    requests: u64,
    failures: u64,
    mean_ms: f64,
    max_ms: f64,
}

#[derive(Serialize, ToSchema)]
struct ShadowCounters {
    compared: u64,
    different: u64,
    skipped: u64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AnswerDifference)]
struct DifferenceDocument {
    at_ms: u64,
    request_id: String,
    /// Empty for a token that may not change the tenant.
    values: Vec<ValueDocument>,
    /// Further values that differ.
    more: usize,
}

#[derive(Serialize, ToSchema)]
#[schema(as = DifferentValue)]
struct ValueDocument {
    path: String,
    stable: String,
    candidate: String,
}

impl Of {
    fn names(&self) -> Result<(Name, Name), Problem> {
        Ok((name("tenant", &self.tenant)?, name("pipeline", &self.pipeline)?))
    }
}

impl Candidate {
    pub(crate) fn new(tenant: &str, pipeline: &str) -> Self {
        Self(Of { tenant: tenant.into(), pipeline: pipeline.into() })
    }
}

impl CandidateEnd {
    pub(crate) fn new(tenant: &str, pipeline: &str, end: End) -> Self {
        Self { of: Of { tenant: tenant.into(), pipeline: pipeline.into() }, end }
    }
}

/// Below it are the ends of the candidate.
const PATH: &str = "tenants/{tenant}/pipelines/{pipeline}/candidate";

impl Candidate {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let summary = "Read how the candidate of a pipeline fares on this server";
        let mut get = Operation::get(PATH, summary);
        get.schemas.parts::<Counters>();
        vec![get.answers::<CandidateDocument<'_>>().finds()]
    }
}

impl CandidateEnd {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let promote = Operation::post(&format!("{PATH}/promote"), "Put a candidate in its place");
        let abort = Operation::post(&format!("{PATH}/abort"), "Take a candidate away");
        vec![promote.flag(SKIP_SAMPLES).changes::<Released>(), abort.changes::<Released>()]
    }
}

impl Resource for Candidate {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::SeeTenant(&self.0.tenant)
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            none(received.query)?;
            let (tenant, pipeline) = self.0.names()?;
            let serving = state.control.serving();
            let spec = serving.tenant(&tenant)?.pipelines.get(&pipeline);
            let spec = spec.ok_or_else(|| StateError::not_found("pipeline", &pipeline))?;
            let served = serving.snapshot.tenants.get(&tenant);
            let route = served.and_then(|tenant| match tenant.pipelines.get(&pipeline)? {
                Pipeline::Ready(route) => Some(route),
                Pipeline::Unavailable(_) => None,
            });
            // Clients' answers are for those who may also read the requests that are kept.
            let sees_values = Permission::ChangeTenant(&self.0.tenant)
                .is_given_to(received.caller, &serving.desired);
            let document = spec.candidate.as_deref();
            let candidate = Found::of(document.is_some(), route.map(|route| &**route));
            let report = candidate.evaluation.map(Evaluation::report);
            let aborted = report.as_ref().and_then(|report| report.aborted.as_deref());
            AdminAnswer::of(&CandidateDocument {
                tenant: &tenant,
                pipeline: &pipeline,
                state: if aborted.is_some() { "aborted" } else { candidate.state },
                reason: aborted.or(candidate.reason),
                document,
                counters: candidate
                    .evaluation
                    .zip(report.as_ref())
                    .map(|(evaluation, report)| Counters::of(evaluation, report, sees_values)),
            })
        })
    }
}

/// What is known of a pipeline's candidate.
struct Found<'a> {
    state: &'static str,
    reason: Option<&'a str>,
    evaluation: Option<&'a Evaluation>,
}

impl<'a> Found<'a> {
    fn of(is_wanted: bool, route: Option<&'a Route>) -> Self {
        let unavailable = |reason| Self { state: "unavailable", reason, evaluation: None };
        let Some(route) = route else {
            return match is_wanted {
                true => unavailable(Some("the pipeline is not available")),
                false => Self { state: "none", reason: None, evaluation: None },
            };
        };
        match (&route.candidate, &route.ended) {
            (Some(candidate), _) => {
                let reason = candidate.served.as_ref().err().map(String::as_str);
                let state = if reason.is_some() { "unavailable" } else { "running" };
                Self { state, reason, evaluation: Some(&candidate.evaluation) }
            }
            (None, Some(ended)) => {
                Self { state: "ended", reason: None, evaluation: Some(&**ended) }
            }
            (None, None) => Self { state: "none", reason: None, evaluation: None },
        }
    }
}

impl Counters {
    fn of(evaluation: &Evaluation, report: &EvaluationReport, sees_values: bool) -> Self {
        let ShadowTally { compared, different, skipped } = report.shadow;
        Self {
            since_release: evaluation.since(),
            stable: VariantCounters::of(report.stable),
            candidate: VariantCounters::of(report.candidate),
            shadow: ShadowCounters { compared, different, skipped },
            differences: report
                .differences
                .iter()
                .map(|difference| DifferenceDocument::of(difference, sees_values))
                .collect(),
        }
    }
}

impl VariantCounters {
    fn of(tally: VariantTally) -> Self {
        let VariantTally { requests, failures, time, slowest } = tally;
        let ms = |seconds: f64| (seconds * 1e6).round() / 1e3;
        let mean = time.as_secs_f64() / requests.max(1) as f64;
        Self { requests, failures, mean_ms: ms(mean), max_ms: ms(slowest.as_secs_f64()) }
    }
}

impl DifferenceDocument {
    fn of(difference: &Difference, sees_values: bool) -> Self {
        let Difference { at, request_id, mismatches } = difference;
        let shown = if sees_values { &mismatches.first[..] } else { &[] };
        let value = |Mismatch { path, expected, found: actual }: &Mismatch| ValueDocument {
            path: path.clone(),
            stable: expected.clone(),
            candidate: actual.clone(),
        };
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            at_ms: since.as_millis() as u64,
            request_id: request_id.to_string(),
            values: shown.iter().map(value).collect(),
            more: mismatches.more + mismatches.first.len() - shown.len(),
        }
    }
}

impl Resource for CandidateEnd {
    fn allowed(&self) -> Allowed {
        Allowed::Post
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::ChangeTenant(&self.of.tenant)
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let (tenant, pipeline) = self.of.names()?;
            let mut options = received.options;
            let end = match self.end {
                End::Promote => {
                    options.skips_samples = flag(SKIP_SAMPLES, received.query)?;
                    AskedChange::Promote { tenant, pipeline }
                }
                End::Abort => {
                    none(received.query)?;
                    // The pipeline itself has served all the time, so its samples need not run.
                    options.skips_samples = true;
                    AskedChange::Abort { tenant, pipeline, only: None }
                }
            };
            AdminAnswer::released(state.control.change(end, options).await?, None)
        })
    }
}
