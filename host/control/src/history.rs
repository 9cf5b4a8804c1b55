//! Releases as people read them.
//!
//! Invariant: no document has a key, a token or a hash of one.

use std::time::{Duration, UNIX_EPOCH};

use humantime::format_rfc3339_millis;
use serde_json::{Value, json};

use crate::current::{config_document, pipeline_document, tenant_document};
use crate::error::ControlError;
use crate::release::change::{Change, Release};

/// The document of a release. Its changes have the form in which they can be asked for, but for
/// keys and the secrets of tokens, which are left out.
///
/// # Errors
/// It cannot be written as JSON.
pub(crate) fn release_document(release: &Release) -> Result<Value, ControlError> {
    let mut document = heading(release);
    let changes = release.changes.iter().map(change_document);
    document["changes"] = changes.collect::<Result<Vec<_>, _>>()?.into();
    Ok(document)
}

/// The document without the contents of the changes: each is a line of text, up to `most` of them.
pub(crate) fn release_summary(release: &Release, most: usize) -> Value {
    let mut document = heading(release);
    let changes = release.changes.iter().take(most).map(ToString::to_string);
    document["changes"] = changes.collect::<Vec<_>>().into();
    document["changes_total"] = release.changes.len().into();
    document
}

fn heading(release: &Release) -> Value {
    let published_at = UNIX_EPOCH + Duration::from_millis(release.published_at_ms);
    let mut document = json!({
        "number": release.number,
        "published_at": format_rfc3339_millis(published_at).to_string(),
    });
    for (key, text) in [("by", &release.note.by), ("message", &release.note.message)] {
        if let Some(text) = text {
            document[key] = text.as_str().into();
        }
    }
    document
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
