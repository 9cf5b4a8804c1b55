//! The difference between two states, thing by thing.

use std::collections::{BTreeMap, BTreeSet};

use gristmill_core::Name;
use serde_json::Value;

use crate::desired::tenant::is_same;
use crate::error::StateError;
use crate::fault::Subject;
use crate::serving::Serving;

/// A thing that a release makes, changes or deletes.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The thing.
    pub subject: Subject,
    /// Its document before the release. None if it did not exist.
    pub before: Option<Value>,
    /// Its document afterwards. None if it does not exist then.
    pub after: Option<Value>,
}

/// All things whose documents differ: models, then each tenant with what it owns. `after` was built
/// from `before`, or is the same.
///
/// # Errors
/// A document cannot be written as JSON.
pub fn differences(before: &Serving, after: &Serving) -> Result<Vec<Difference>, StateError> {
    let mut differences = Vec::new();
    for subject in changed(before, after) {
        let [before, after] = [before.document(&subject)?, after.document(&subject)?];
        if before != after {
            differences.push(Difference { subject, before, after });
        }
    }
    Ok(differences)
}

/// The things that may differ.
fn changed(before: &Serving, after: &Serving) -> Vec<Subject> {
    let touched = &after.touched;
    let (before, after) = (&before.desired, &after.desired);
    let mut subjects = Vec::new();
    for model in names(Some(&before.models), Some(&after.models)) {
        if before.models.get(&model) != after.models.get(&model) {
            subjects.extend([Subject::Model(model.clone()), Subject::ModelConfig(model)]);
        }
    }
    for tenant in touched {
        let (before, after) = (before.tenants.get(tenant), after.tenants.get(tenant));
        if is_same(before, after) {
            continue;
        }
        subjects.push(Subject::Tenant(tenant.clone()));
        let of = || tenant.clone();
        let keys = names(
            before.map(|tenant| &tenant.key_versions),
            after.map(|tenant| &tenant.key_versions),
        );
        subjects.extend(keys.into_iter().map(|key| Subject::Key { tenant: of(), key }));
        let plugins =
            names(before.map(|tenant| &tenant.plugins), after.map(|tenant| &tenant.plugins));
        let plugins = plugins.into_iter().map(|plugin| Subject::Plugin { tenant: of(), plugin });
        subjects.extend(plugins);
        let assets = names(before.map(|tenant| &tenant.assets), after.map(|tenant| &tenant.assets));
        subjects.extend(assets.into_iter().map(|asset| Subject::Asset { tenant: of(), asset }));
        let pipelines =
            names(before.map(|tenant| &tenant.pipelines), after.map(|tenant| &tenant.pipelines));
        let pipelines = pipelines.into_iter();
        subjects.extend(pipelines.map(|pipeline| Subject::Pipeline { tenant: of(), pipeline }));
    }
    subjects
}

/// The names in either of them.
fn names<T>(
    before: Option<&BTreeMap<Name, T>>,
    after: Option<&BTreeMap<Name, T>>,
) -> BTreeSet<Name> {
    [before, after].into_iter().flatten().flat_map(BTreeMap::keys).cloned().collect()
}
