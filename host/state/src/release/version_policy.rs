//! The versions of a model or a plugin that stay loaded beside the newest one, as a document says
//! it in Triton's spelling.
//!
//! Invariant: a policy keeps a bounded number of versions, because each takes memory.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::release::document::{Document, Faults, shown, whole_of};

/// The most versions of a model that are loaded, the newest one included.
pub const MODEL_VERSIONS_MAX: usize = 16;

/// The most versions of a tenant's plugin that are loaded, the newest one included.
pub const PLUGIN_VERSIONS_MAX: usize = 8;

/// The versions that stay loaded. The newest version always does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum VersionPolicy {
    /// The newest ones.
    Latest {
        /// How many, from 1 on.
        #[schema(minimum = 1, maximum = 16)]
        num_versions: usize,
    },
    /// These ones.
    Specific {
        /// The releases that brought them.
        #[schema(value_type = Vec<u64>, max_items = 16)]
        versions: BTreeSet<u64>,
    },
}

impl Default for VersionPolicy {
    /// The newest version alone.
    fn default() -> Self {
        Self::Latest { num_versions: 1 }
    }
}

impl VersionPolicy {
    /// Whether nothing but the newest version stays.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it keeps this version, which is behind so many newer ones.
    pub fn keeps(&self, version: u64, newer: usize) -> bool {
        match self {
            Self::Latest { num_versions } => newer < *num_versions,
            Self::Specific { versions } => versions.contains(&version),
        }
    }

    /// The versions that it names.
    pub fn named(&self) -> impl Iterator<Item = u64> {
        let named = match self {
            Self::Latest { .. } => None,
            Self::Specific { versions } => Some(versions),
        };
        named.into_iter().flatten().copied()
    }

    /// Read the policy under `key` of a document that is not part of another one. At most `most`
    /// versions can be kept.
    pub fn read(document: &mut Document, key: &'static str, most: usize) -> Self {
        let Some(keys) = document.object(key) else { return Self::default() };
        document.inside(format!("{key}."), keys, |policy| Self::read_from(policy, key, most))
    }

    fn read_from(policy: &mut Document, key: &str, most: usize) -> Self {
        let (latest, specific) = (policy.object("latest"), policy.object("specific"));
        if policy.value("all").is_some() {
            let text = format!(
                " is not offered, because each version takes memory: give latest with num_versions \
                 up to {most}, or specific with up to {most} versions"
            );
            policy.fault("all", text);
        }
        if latest.is_some() && specific.is_some() {
            policy.fault("specific", " is given, and latest, too: give one of them");
        }
        if let Some(keys) = latest {
            let count = policy.inside(format!("{key}.latest."), keys, |latest| {
                let count = latest.whole("num_versions");
                latest.require("num_versions", count)
            });
            return Self::Latest { num_versions: count.unwrap_or(1) };
        }
        let Some(keys) = specific else { return Self::default() };
        let versions = policy.inside(format!("{key}.specific."), keys, |specific| {
            let versions = specific.list("versions", |item| {
                let wrong = || format!(" is {}: must be a whole number from 1 on", shown(item));
                whole_of(item).filter(|version| *version > 0).ok_or_else(wrong)
            });
            specific.require("versions", versions)
        });
        Self::Specific { versions: versions.into_iter().flatten().collect() }
    }

    /// Add the faults of the policy under `key`.
    pub fn check(&self, key: &str, most: usize, faults: &mut Faults) {
        match self {
            Self::Latest { num_versions } => {
                let key = format!("{key}.latest.num_versions");
                if !faults.has(&key) {
                    faults.within(&key, *num_versions as u64, 1..=most as u64);
                }
            }
            Self::Specific { versions } => {
                let key = format!("{key}.specific.versions");
                let count = versions.len();
                if count > most {
                    let text = format!("{key} has {count} versions: the limit is {most}");
                    faults.add(key, text);
                } else if count == 0 && !faults.has(&key) {
                    let text = format!("{key} is empty: name a version, or give latest");
                    faults.add(key, text);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
