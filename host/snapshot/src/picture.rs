//! The picture as a whole: all tenants and models as of one release.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use gristmill_core::{KeyHash, KeyHashes, Name};
use rpds::HashTrieMapSync;

use crate::model::ModelState;
use crate::tenant::Tenant;

/// Everything that serves, as of one release.
#[derive(Default)]
pub struct Snapshot {
    /// The number of the release; 0 before the first.
    pub release: u64,
    /// The tenants by name. The next snapshot shares the tenants that its release does not touch.
    /// Copying the map takes the same time for any number of tenants.
    pub tenants: HashTrieMapSync<Name, Arc<Tenant>>,
    /// The tenant that a key opens, by the key's hash.
    pub keys: HashTrieMapSync<KeyHash, Name>,
    /// Whether the hashes of some keys are [`KeyHash::Plain`].
    pub has_plain_keys: bool,
    /// The admin tokens whose holders are operators, by their hashes.
    pub operators: HashMap<KeyHash, Operator>,
    /// The models by name.
    pub models: BTreeMap<Name, ModelState>,
}

/// An admin token whose holder is an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// The token's name.
    pub name: Name,
    /// The release that brought its secret.
    pub version: u64,
    /// When it ends.
    pub ends: Option<SystemTime>,
}

impl Snapshot {
    /// The tenant that the key with these hashes opens.
    pub fn tenant_of(&self, key: &KeyHashes) -> Option<&Name> {
        let plain = || self.keys.get(key.plain.as_ref()?);
        self.keys.get(&key.keyed).or_else(plain)
    }

    /// The operator whose token has these hashes.
    pub fn operator_of(&self, token: &KeyHashes) -> Option<&Operator> {
        let plain = || self.operators.get(token.plain.as_ref()?);
        self.operators.get(&token.keyed).or_else(plain)
    }
}
