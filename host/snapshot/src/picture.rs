//! The picture as a whole: all tenants and models as of one release.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use gristmill_core::{Digest, Name};

use crate::model::ModelState;
use crate::tenant::Tenant;

/// Everything that serves, as of one release.
#[derive(Default)]
pub struct Snapshot {
    /// The number of the release; 0 before the first.
    pub release: u64,
    /// The tenants by name. The next snapshot shares the tenants that its release does not touch.
    pub tenants: HashMap<Name, Arc<Tenant>>,
    /// The tenant that a key opens, by the key's digest.
    pub keys: HashMap<Digest, Name>,
    /// The models by name.
    pub models: BTreeMap<Name, ModelState>,
}
