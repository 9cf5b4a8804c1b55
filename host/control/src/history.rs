//! Releases as people read them.
//!
//! Invariant: no document has a key, a token or a hash of one.

use std::time::{Duration, UNIX_EPOCH};

use gristmill_state::{
    Change, Release, ReleaseNote, config_document, pipeline_document, tenant_document,
};
use humantime::format_rfc3339_millis;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ControlError;

/// What is shown of every release.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReleaseHeading {
    /// Its number in the log, from 1 on.
    pub number: u64,
    /// When it was made, if it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub published_at: Option<String>,
    /// The name of the token that it was made with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What its author said about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A release in a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReleaseSummary {
    /// What is shown of every release.
    #[serde(flatten)]
    pub heading: ReleaseHeading,
    /// The first of its changes, a line of text each.
    pub changes: Vec<String>,
    /// How many changes it has.
    pub changes_total: usize,
    /// Why it cannot be read. Its changes are not known then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// The document of a release. Its changes have the form in which they can be asked for, but for
/// keys and the secrets of tokens, which are left out.
///
/// # Errors
/// It cannot be written as JSON.
pub(crate) fn release_document(release: &Release) -> Result<Value, ControlError> {
    let mut document = serde_json::to_value(heading(release))?;
    let changes = release.changes.iter().map(change_document);
    document["changes"] = changes.collect::<Result<Vec<_>, _>>()?.into();
    Ok(document)
}

/// The document without the contents of the changes, and with `most` of them.
pub(crate) fn release_summary(release: &Release, most: usize) -> ReleaseSummary {
    let changes = release.changes.iter().take(most).map(ToString::to_string);
    ReleaseSummary {
        heading: heading(release),
        changes: changes.collect(),
        changes_total: release.changes.len(),
        fault: None,
    }
}

/// The document of a release that cannot be read.
pub(crate) fn unreadable_summary(number: u64, error: &ControlError) -> ReleaseSummary {
    let heading = ReleaseHeading { number, published_at: None, by: None, message: None };
    let fault = Some(error.to_string());
    ReleaseSummary { heading, changes: Vec::new(), changes_total: 0, fault }
}

fn heading(release: &Release) -> ReleaseHeading {
    let published_at = UNIX_EPOCH + Duration::from_millis(release.published_at_ms);
    let ReleaseNote { by, message } = release.note.clone();
    let published_at = Some(format_rfc3339_millis(published_at).to_string());
    ReleaseHeading { number: release.number, published_at, by, message }
}

fn change_document(change: &Change) -> Result<Value, ControlError> {
    let mut document = serde_json::to_value(change)?;
    let Some(keys) = document.as_object_mut() else { return Ok(document) };
    let content = match change {
        Change::PutTenant { spec, .. } => tenant_document(spec)?,
        Change::PutPipeline { spec, .. } => pipeline_document(spec)?,
        Change::PutModelConfig { config, .. } => config_document(config)?,
        Change::PutKey { .. } => {
            keys.remove("digest");
            return Ok(document);
        }
        Change::PutToken { spec, .. } => spec.document(),
        _ => return Ok(document),
    };
    keys.remove("spec");
    keys.remove("config");
    keys.insert("document".into(), content);
    Ok(document)
}
