//! `GET` and `POST /admin/v1/releases`: the releases of the past, and a release of many changes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gristmill_control::{NewRelease, Published, ReleaseSummary, ShownSample};
use gristmill_core::{ErrorCode, Name};
use gristmill_state::{
    AskedChange, ChangeOptions, Difference, Document, ModelNameText, NameText, Power, SampleAnswer,
    SampleFailure, StateError, Subject,
};
use gristmill_transport::{Allowed, Problem};
use http::{HeaderValue, Method};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::change_schema::SentChange;
use super::query::{
    CASCADE, DRY_RUN, FORCE, SHOW_ANSWERS, SKIP_SAMPLES, count_in, flags, invalid, parameters,
};
use super::{Answering, Asked, Resource, changes, is_read};
use crate::answer::{AdminAnswer, Noted, Outcome};
use crate::change_options::check_message;
use crate::operation::{Operation, integer};
use crate::permission::Permission;
use crate::receive::Received;
use crate::state::AdminState;

/// The most releases of a page, by default and at all. Each is read from the log.
const LIMIT: usize = 20;
const LIMIT_MAX: usize = 100;

pub(crate) struct Releases;

/// A release of many changes: all of them or none.
#[derive(ToSchema)]
#[schema(as = NewRelease)]
struct AskedRelease {
    /// They are made in this order.
    #[schema(value_type = Vec<SentChange>, min_items = 1, max_items = 1000)]
    changes: Vec<AskedChange>,
    /// The release that must serve now.
    expected_release: Option<u64>,
    /// Why, for the history of releases.
    #[schema(max_length = 1000, pattern = r"^[^\x00-\x09\x0b-\x1f\x7f-\x9f]*$")]
    message: Option<String>,
}

/// A page of releases, the last ones first.
#[derive(Serialize)]
struct PageDocument {
    items: Vec<ReleaseSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// The answer to a release of many changes, and to going back.
#[derive(Serialize, ToSchema)]
#[schema(as = ReleaseMade)]
pub(super) struct Made {
    /// The number of the release that serves now, or would serve.
    release: u64,
    /// Whether it was only tried.
    dry_run: bool,
    differences: Vec<DifferenceDocument>,
    /// What may do more or less afterwards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    power: Vec<Power>,
    /// What samples got, if `show_answers` asked for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    samples: Vec<SampleDocument>,
}

/// What a sample got. It has a body, or the code of a failure, or neither if the body is too large
/// to be shown.
#[derive(Serialize, ToSchema)]
#[schema(as = SampleAnswered)]
struct SampleDocument {
    #[schema(value_type = NameText)]
    tenant: Name,
    #[schema(value_type = NameText)]
    pipeline: Name,
    /// Whether the pipeline's candidate answered.
    candidate: bool,
    #[schema(value_type = NameText)]
    sample: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// The body, as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// The plugin's own words, which a client does not get.
    #[serde(skip_serializing_if = "Option::is_none")]
    internal: Option<String>,
}

/// A thing that a release makes, changes or deletes.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = Difference)]
struct DifferenceDocument {
    /// The kind of thing: `tenant`, `key`, `plugin`, `pipeline`, `model`, `model_config` or
    /// `token`.
    kind: &'static str,
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<Name>,
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Name>,
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<Name>,
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    asset: Option<Name>,
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pipeline: Option<Name>,
    #[schema(value_type = Option<ModelNameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Name>,
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<Name>,
    /// Its document before, or null if it did not exist.
    #[schema(value_type = Option<Object>, required)]
    before: Option<Value>,
    /// Its document afterwards, or null if it does not exist then.
    #[schema(value_type = Option<Object>, required)]
    after: Option<Value>,
}

impl Releases {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let mut list = Operation::get("releases", "List the releases, the last ones first");
        let item = list.schemas.shown::<ReleaseSummary>();
        vec![
            list.number("limit", Some(LIMIT_MAX), "The most items of a page")
                .number("before", None, "The number of the release after the page")
                .pages(item, integer(1, None)),
            Operation::post("releases", "Make a release of many changes: all of them or none")
                .about("Files are uploaded before, to `blobs`.")
                .takes::<AskedRelease>()
                .flag(CASCADE)
                .flag(FORCE)
                .flag(DRY_RUN)
                .flag(SKIP_SAMPLES)
                .flag(SHOW_ANSWERS)
                .releases::<Made>()
                .finds(),
        ]
    }
}

impl Resource for Releases {
    fn allowed(&self) -> Allowed {
        Allowed::GetAndPost
    }

    fn permission(&self, method: &Method) -> Permission<'_> {
        match is_read(method) {
            true => Permission::See,
            false => Permission::ChangeNamed,
        }
    }

    fn answer<'a>(&'a self, Asked { state, method, received }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            match *method {
                Method::POST => post(state, received).await,
                _ => list(state, &received).await,
            }
        })
    }
}

async fn list(state: &AdminState, received: &Received<'_>) -> Outcome {
    let [limit, before] = parameters(["limit", "before"], received.query)?;
    let limit = limit.map_or(Ok(LIMIT), |limit| count_in("limit", limit, LIMIT_MAX))?;
    let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
    let wrong = |text: &str| invalid(format!("before is {text:?}: must be a release's number"));
    let before = before.map(|text| number(text).ok_or_else(|| wrong(text))).transpose()?;
    let token_scope = received.caller.token_scope();
    let (items, next) = state.control.past_releases(before, limit, &token_scope).await?;
    let answer = AdminAnswer::digested(&PageDocument { items, next })?;
    let Some(next) = next else { return Ok(answer) };
    let link = format!("<?limit={limit}&before={next}>; rel=\"next\"");
    let link = HeaderValue::try_from(link);
    let link = link.map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
    Ok(answer.linked(link))
}

async fn post(state: &AdminState, received: Received<'_>) -> Outcome {
    let (query, caller, mut options) = (received.query, received.caller, received.options.clone());
    let keys = received.document(&state.limits).await?;
    let [cascade, force, is_dry_run, skips_samples, shows_answers] =
        flags([CASCADE, FORCE, DRY_RUN, SKIP_SAMPLES, SHOW_ANSWERS], query)?;
    if shows_answers && (skips_samples || !is_dry_run) {
        return Err(invalid(
            "show_answers is true: it needs dry_run=true, and no skip_samples=true".into(),
        ));
    }
    options.skips_samples = skips_samples;
    no_conditions(&options)?;
    let AskedRelease { changes, expected_release, message } = AskedRelease::read(keys, state)?;
    state.count_new_keys(caller, &changes)?;
    options.note.message = message.or(options.note.message);
    let new = NewRelease { changes, expected_release, cascade, force, is_dry_run, shows_answers };
    made(state.control.release(new, options).await?, is_dry_run)
}

impl AskedRelease {
    /// # Errors
    /// All faults of the document.
    fn read(keys: Map<String, Value>, state: &AdminState) -> Result<Self, StateError> {
        let mut document = Document::new(keys);
        let changes = changes::read(&mut document, state);
        let expected_release = document.whole("expected_release");
        let message = read_message(&mut document);
        let faults = document.finish();
        match changes.filter(|_| faults.is_empty()) {
            Some(changes) => Ok(Self { changes, expected_release, message }),
            None => Err(StateError::Invalid(faults)),
        }
    }
}

/// Refuse conditions on one thing: a whole release has `expected_release` in place of them.
pub(super) fn no_conditions(options: &ChangeOptions) -> Result<(), Problem> {
    match options.conditions.are_none() {
        true => Ok(()),
        false => Err(invalid(
            "If-Match and If-None-Match are not for whole releases: use expected_release".into(),
        )),
    }
}

/// Read the key `message`. It stands before the header.
pub(super) fn read_message(document: &mut Document) -> Option<String> {
    let message = document.text("message")?;
    match check_message(&message) {
        Ok(()) => Some(message),
        Err(why) => {
            document.fault("message", format_args!(" {why}"));
            None
        }
    }
}

/// The answer to a release of many changes.
pub(super) fn made(published: Published, is_dry_run: bool) -> Outcome {
    let Published { release, differences, power, samples, .. } = published;
    let samples = samples.into_iter().map(SampleDocument::of).collect();
    let differences = differences.into_iter().map(DifferenceDocument::of).collect();
    let noted = Noted { release: (!is_dry_run).then_some(release), digest: None };
    let made = Made { release, dry_run: is_dry_run, differences, power, samples };
    AdminAnswer::changed(&made, None, noted)
}

impl SampleDocument {
    fn of(shown: ShownSample) -> Self {
        let ShownSample { tenant, pipeline, is_candidate: candidate, sample, answer } = shown;
        let status = answer.as_ref().map(SampleAnswer::status);
        let empty = Self {
            tenant,
            pipeline,
            candidate,
            sample,
            status,
            content_type: None,
            base64: None,
            code: None,
            detail: None,
            internal: None,
        };
        match answer {
            Some(SampleAnswer::Response { content_type, body, .. }) => Self {
                content_type: Some(content_type),
                base64: Some(STANDARD.encode(body)),
                ..empty
            },
            Some(SampleAnswer::Failed(SampleFailure { code, detail, internal, .. })) => {
                Self { code: Some(code.as_str()), detail: Some(detail), internal, ..empty }
            }
            None => empty,
        }
    }
}

impl DifferenceDocument {
    fn of(difference: Difference) -> Self {
        let Difference { subject, before, after } = difference;
        let kind = match subject {
            Subject::Tenant(_) => "tenant",
            Subject::Key { .. } => "key",
            Subject::Plugin { .. } => "plugin",
            Subject::Asset { .. } => "asset",
            Subject::Pipeline { .. } => "pipeline",
            Subject::Candidate { .. } => "candidate",
            Subject::Model(_) => "model",
            Subject::ModelConfig(_) => "model_config",
            Subject::Token(_) => "token",
        };
        let document = Self { kind, before, after, ..Self::default() };
        match subject {
            Subject::Tenant(tenant) => Self { tenant: Some(tenant), ..document },
            Subject::Key { tenant, key } => {
                Self { tenant: Some(tenant), key: Some(key), ..document }
            }
            Subject::Plugin { tenant, plugin } => {
                Self { tenant: Some(tenant), plugin: Some(plugin), ..document }
            }
            Subject::Asset { tenant, asset } => {
                Self { tenant: Some(tenant), asset: Some(asset), ..document }
            }
            Subject::Pipeline { tenant, pipeline } | Subject::Candidate { tenant, pipeline } => {
                Self { tenant: Some(tenant), pipeline: Some(pipeline), ..document }
            }
            Subject::Model(model) | Subject::ModelConfig(model) => {
                Self { model: Some(model), ..document }
            }
            Subject::Token(token) => Self { token: Some(token), ..document },
        }
    }
}
