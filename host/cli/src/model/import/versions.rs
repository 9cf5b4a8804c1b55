//! The versions of a model that Triton serves, as `version_policy` says it.

use std::collections::BTreeSet;

use gristmill_state::MODEL_VERSIONS_MAX;
use serde_json::{Value, json};

use super::reading::Reading;
use super::text_format::Field;

/// The versions of a model's folder that are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    /// So many of the newest ones.
    Latest(u64),
    /// These ones, as far as they are there.
    Specific(BTreeSet<u64>),
    All,
}

impl Default for Versions {
    fn default() -> Self {
        Self::Latest(1)
    }
}

impl Versions {
    /// Read the field `version_policy`.
    pub(super) fn read(read: &mut Reading, field: &Field) -> Self {
        let mut versions = Self::default();
        let at = "version_policy.";
        for field in read.message("", field).into_iter().flat_map(|policy| &policy.fields) {
            let Some(policy) = read.message(at, field) else { continue };
            match &*field.name {
                "latest" => {
                    let at = "version_policy.latest.";
                    let mut count = 1;
                    for field in &policy.fields {
                        match &*field.name {
                            "num_versions" => count = read.whole(at, field).unwrap_or(1).max(1),
                            _ => read.ignore_unknown(at, field),
                        }
                    }
                    versions = Self::Latest(count);
                }
                "specific" => {
                    let at = "version_policy.specific.";
                    let mut named = BTreeSet::<u64>::new();
                    for field in &policy.fields {
                        match &*field.name {
                            "versions" => named.extend(read.whole(at, field)),
                            _ => read.ignore_unknown(at, field),
                        }
                    }
                    versions = Self::Specific(named);
                }
                "all" => versions = Self::All,
                _ => read.ignore_unknown(at, field),
            }
        }
        versions
    }

    /// Those of the versions `there`, in order, that are served; at most as many as a model may
    /// have loaded.
    pub(super) fn choose(&self, there: &BTreeSet<u64>) -> Vec<u64> {
        let wanted = match self {
            Self::Latest(count) => usize::try_from(*count).unwrap_or(usize::MAX),
            Self::Specific(_) | Self::All => MODEL_VERSIONS_MAX,
        };
        let is_named = |version: &&u64| match self {
            Self::Specific(named) => named.contains(*version),
            Self::Latest(_) | Self::All => true,
        };
        let newest = there.iter().filter(is_named).rev().take(wanted.min(MODEL_VERSIONS_MAX));
        let mut chosen: Vec<_> = newest.copied().collect();
        chosen.reverse();
        chosen
    }

    /// What the policy means of the versions `there` and [`Self::choose`] leaves out.
    pub(super) fn notes(&self, there: &BTreeSet<u64>) -> Vec<String> {
        let served = match self {
            Self::Latest(count) => usize::try_from(*count).unwrap_or(usize::MAX).min(there.len()),
            Self::Specific(named) => named.intersection(there).count(),
            Self::All => there.len(),
        };
        let mut notes = Vec::new();
        if served > MODEL_VERSIONS_MAX {
            notes.push(format!(
                "it serves {served} versions, and a model has at most {MODEL_VERSIONS_MAX} loaded: \
                 the newest ones are taken"
            ));
        }
        if let Self::Specific(named) = self
            && let Some(missing) = named.difference(there).next()
        {
            notes.push(format!("version {missing} has no folder"));
        }
        notes
    }

    /// The policy in Gristmill's configuration, if these versions are `chosen`. None if the newest
    /// version is served alone.
    pub(super) fn document(&self, chosen: &[u64]) -> Option<Value> {
        match self {
            Self::Latest(1) => None,
            Self::Latest(count) => {
                let count = (*count).min(MODEL_VERSIONS_MAX as u64);
                Some(json!({ "latest": { "num_versions": count } }))
            }
            Self::Specific(_) | Self::All => Some(json!({ "specific": { "versions": chosen } })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_that_are_served_are_chosen_in_order() {
        let there: BTreeSet<u64> = (1..=20).collect();
        let specific = Versions::Specific([7, 3, 99].into());
        assert_eq!(Versions::default().choose(&there), [20]);
        assert_eq!(Versions::Latest(2).choose(&there), [19, 20]);
        assert_eq!(specific.choose(&there), [3, 7]);
        assert_eq!(Versions::All.choose(&there), (5..=20).collect::<Vec<_>>());
        assert_eq!(Versions::Latest(u64::MAX).choose(&there).len(), MODEL_VERSIONS_MAX);
        assert_eq!(Versions::All.choose(&BTreeSet::new()), [0; 0]);

        assert_eq!(Versions::default().document(&[20]), None);
        let latest = Versions::Latest(99).document(&[1]);
        assert_eq!(latest, Some(json!({ "latest": { "num_versions": 16 } })));
        let named = Some(json!({ "specific": { "versions": [3, 7] } }));
        assert_eq!(specific.document(&[3, 7]), named);
    }
}
