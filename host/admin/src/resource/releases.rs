//! `GET` and `POST /admin/v1/releases`: the releases of the past, and a release of many changes.

use async_trait::async_trait;
use gristmill_control::{ControlError, Document, NewRelease, Published, Subject, Terms};
use gristmill_core::ErrorCode;
use gristmill_transport::{Allowed, Problem};
use http::{HeaderValue, Method};
use serde_json::{Value, json};

use super::query::{SKIP_SAMPLES, count_in, flags, invalid, parameters};
use super::{Resource, changes, is_read};
use crate::answer::{Answer, Noted, Outcome};
use crate::permission::Permission;
use crate::receive::Received;
use crate::state::State;
use crate::terms::check_message;

/// The most releases of a page, by default and at all. Each is read from the log.
const LIMIT: usize = 20;
const LIMIT_MAX: usize = 100;

pub(crate) struct Releases;

#[async_trait]
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

    async fn answer(&self, state: &State, method: &Method, received: Received<'_>) -> Outcome {
        match *method {
            Method::POST => post(state, received).await,
            _ => list(state, &received).await,
        }
    }
}

async fn list(state: &State, received: &Received<'_>) -> Outcome {
    let [limit, before] = parameters(["limit", "before"], received.query)?;
    let limit = limit.map_or(Ok(LIMIT), |limit| count_in("limit", limit, LIMIT_MAX))?;
    let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
    let wrong = |text: &str| invalid(format!("before is {text:?}: must be a release's number"));
    let before = before.map(|text| number(text).ok_or_else(|| wrong(text))).transpose()?;
    let reach = received.caller.reach();
    let (items, next) = state.control.past_releases(before, limit, &reach).await?;
    let mut document = json!({ "items": items });
    let Some(next) = next else { return Answer::digested(&document) };
    document["next"] = next.into();
    let link = format!("<?limit={limit}&before={next}>; rel=\"next\"");
    let link = HeaderValue::try_from(link);
    let link = link.map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
    Ok(Answer::digested(&document)?.linked(link))
}

async fn post(state: &State, received: Received<'_>) -> Outcome {
    let (query, mut terms) = (received.query, received.terms.clone());
    let keys = received.document(&state.limits).await?;
    let names = ["cascade", "force", "dry_run", SKIP_SAMPLES];
    let [cascade, force, is_dry_run, skips_samples] = flags(names, query)?;
    terms.skips_samples = skips_samples;
    no_conditions(&terms)?;
    let mut document = Document::new(keys);
    let changes = changes::read(&mut document, state);
    let expected_release = document.whole("expected_release");
    read_message(&mut document, &mut terms);
    let faults = document.finish();
    let Some(changes) = changes.filter(|_| faults.is_empty()) else {
        return Err(ControlError::Invalid(faults.into_texts()).into());
    };
    let new = NewRelease { changes, expected_release, cascade, force, is_dry_run };
    made(&state.control.release(new, terms).await?, is_dry_run)
}

/// Refuse conditions on one thing: a whole release has `expected_release` in place of them.
pub(super) fn no_conditions(terms: &Terms) -> Result<(), Problem> {
    match terms.conditions.are_none() {
        true => Ok(()),
        false => Err(invalid(
            "If-Match and If-None-Match are not for whole releases: use expected_release".into(),
        )),
    }
}

/// Read the key `message`. It stands before the header.
pub(super) fn read_message(document: &mut Document, terms: &mut Terms) {
    let Some(message) = document.text("message") else { return };
    match check_message(&message) {
        Ok(()) => terms.note.message = Some(message),
        Err(why) => document.fault("message", format_args!(" {why}")),
    }
}

/// The answer to a release of many changes.
pub(super) fn made(published: &Published, is_dry_run: bool) -> Outcome {
    let differences = published.differences.iter().map(|difference| {
        let mut document = named(&difference.subject);
        document["before"] = difference.before.clone().into();
        document["after"] = difference.after.clone().into();
        document
    });
    let release = published.release;
    let document = json!({
        "release": release,
        "dry_run": is_dry_run,
        "differences": differences.collect::<Vec<_>>(),
    });
    let noted = Noted { release: (!is_dry_run).then_some(release), digest: None };
    Answer::changed(&document, None, noted)
}

/// The kind and the names of a thing.
fn named(subject: &Subject) -> Value {
    match subject {
        Subject::Tenant(tenant) => json!({ "kind": "tenant", "tenant": tenant }),
        Subject::Key { tenant, key } => json!({ "kind": "key", "tenant": tenant, "key": key }),
        Subject::Plugin { tenant, plugin } => {
            json!({ "kind": "plugin", "tenant": tenant, "plugin": plugin })
        }
        Subject::Pipeline { tenant, pipeline } => {
            json!({ "kind": "pipeline", "tenant": tenant, "pipeline": pipeline })
        }
        Subject::Candidate { tenant, pipeline } => {
            json!({ "kind": "candidate", "tenant": tenant, "pipeline": pipeline })
        }
        Subject::Model(model) => json!({ "kind": "model", "model": model }),
        Subject::ModelConfig(model) => json!({ "kind": "model_config", "model": model }),
        Subject::Token(token) => json!({ "kind": "token", "token": token }),
    }
}
