//! One release of many changes: their files are uploaded, the server tries them, and it makes them
//! if nothing else was released meanwhile.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use super::files::Files;
use super::plan::Change;
use crate::admin::Admin;
use crate::progress::Progress;

/// A release to be made.
pub(crate) struct Release<'a> {
    pub(crate) admin: &'a Admin,
    pub(crate) changes: &'a [Change],
    pub(crate) message: Option<&'a str>,
    /// Further parameters of the request.
    pub(crate) query: &'a str,
}

/// The answer to a dry run.
pub(crate) struct Tried {
    pub(crate) answer: Value,
    /// The release on which it was tried.
    base: u64,
}

impl Tried {
    pub(crate) fn differences(&self) -> &[Value] {
        self.answer["differences"].as_array().map_or(&[], Vec::as_slice)
    }
}

impl Release<'_> {
    /// Upload what the server does not have, and try the changes on release `expected`. None if
    /// another release serves by now.
    pub(crate) fn try_out(&self, expected: u64, files: &Files) -> Result<Option<Tried>> {
        let contents: BTreeSet<_> =
            self.changes.iter().filter_map(|change| change.content).collect();
        for file in contents.into_iter().filter_map(|digest| files.file(digest)) {
            file.upload(self.admin)?;
        }
        let all: Vec<_> = self.changes.iter().collect();
        let waiting = Progress::wait("the server checks the release");
        let answer = self.post(&all, expected, true);
        drop(waiting);
        Ok(answer?.map(|answer| Tried { answer, base: expected }))
    }

    /// Make the release as it was tried. Changes that change nothing are left out of it. None if
    /// another release serves by now.
    pub(crate) fn make(&self, tried: &Tried) -> Result<Option<Value>> {
        let is_needed = |change: &&Change| {
            tried.differences().iter().any(|difference| change.makes(difference))
        };
        let needed: Vec<_> = self.changes.iter().filter(is_needed).collect();
        let _waiting = Progress::wait("the server makes the release");
        self.post(&needed, tried.base, false)
    }

    fn post(&self, changes: &[&Change], expected: u64, dry: bool) -> Result<Option<Value>> {
        let documents: Vec<_> = changes.iter().map(|change| &change.document).collect();
        let mut document = json!({ "changes": documents, "expected_release": expected });
        if let Some(message) = self.message {
            document["message"] = message.into();
        }
        let path = format!("releases?{}dry_run={dry}", self.query);
        let answer = self.admin.post_unless_overtaken(&path, &document);
        answer.map_err(|error| named(&error, changes)).context("cannot make the release")
    }
}

/// The error with the changes by their names: the server knows them by their places in the list.
fn named(error: &anyhow::Error, changes: &[&Change]) -> anyhow::Error {
    let mut text = format!("{error:#}");
    for (at, change) in changes.iter().enumerate() {
        let position =
            change.position.as_ref().map(|position| format!(" ({position})")).unwrap_or_default();
        text = text.replace(&format!("changes[{at}]"), &format!("{}{position}", change.label));
    }
    anyhow!(text)
}
