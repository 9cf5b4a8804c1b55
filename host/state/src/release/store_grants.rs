//! The stores that a tenant may use: the key `stores` of its document.
//!
//! Refuses to know which stores a server has: each server binds its own.

use std::collections::BTreeMap;
use std::str::FromStr;

use gristmill_core::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::release::document::{Document, named, one_of, shown};

/// The key of a tenant's document.
const STORES: &str = "stores";

/// Maximum stores of a tenant.
const STORES_MAX: usize = 64;

/// What a tenant may do in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum StoreGrant {
    /// Its plugins may read values.
    Read,
    /// Its plugins may read and change values.
    Write,
}

impl StoreGrant {
    /// Its names in documents.
    const NAMES: [(&'static str, Self); 2] = [("read", Self::Read), ("write", Self::Write)];
}

/// Stores by their names on the server.
pub type StoreGrants = BTreeMap<Name, StoreGrant>;

/// The stores that a tenant's document grants. Members with a fault are left out.
pub fn read_stores(document: &mut Document) -> StoreGrants {
    let members = document.object(STORES).unwrap_or_default();
    let count = members.len();
    if count > STORES_MAX {
        document.fault(STORES, format_args!(" has {count} stores: the limit is {STORES_MAX}"));
    }
    let mut grants = StoreGrants::new();
    for (name, value) in members.iter().take(STORES_MAX) {
        match read_member(name, value) {
            Ok((name, grant)) => {
                grants.insert(name, grant);
            }
            Err(text) => document.member_fault(STORES, name, text),
        }
    }
    grants
}

/// A member of `stores`, or what is wrong with it.
fn read_member(name: &str, value: &Value) -> Result<(Name, StoreGrant), String> {
    let name = Name::from_str(name).map_err(|error| format!("{STORES}: {error}"))?;
    match named(value, &StoreGrant::NAMES) {
        Some(grant) => Ok((name, grant)),
        None => Err(format!(
            "{STORES}.{name} is {}: must be {}",
            shown(value),
            one_of(&StoreGrant::NAMES)
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::name;

    fn read(stores: Value) -> (StoreGrants, Vec<String>) {
        let Value::Object(keys) = json!({ "stores": stores }) else { unreachable!() };
        let mut document = Document::new(keys);
        let grants = read_stores(&mut document);
        (grants, document.finish().into_texts())
    }

    #[test]
    fn a_grant_is_for_reading_or_for_writing_too() {
        let (grants, faults) = read(json!({ "features": "read", "sessions": "write" }));
        assert_eq!(faults, [""; 0]);
        let expected =
            [(name("features"), StoreGrant::Read), (name("sessions"), StoreGrant::Write)];
        assert_eq!(grants, StoreGrants::from(expected));
        assert_eq!(read(Value::Null), (StoreGrants::new(), Vec::new()));
        let again = serde_json::to_value(&grants).unwrap();
        assert_eq!(again, json!({ "features": "read", "sessions": "write" }));
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let (grants, faults) =
            read(json!({ "features": "all", "Features": "read", "ok": "read", "x": 7 }));
        assert_eq!(grants.len(), 1);
        assert_eq!(faults.len(), 3, "{faults:?}");
        for named in [
            "stores.features is \"all\": must be one of read, write",
            "stores: \"Features\" is not a valid name",
            "stores.x is 7: must be one of read, write",
        ] {
            assert!(faults.iter().any(|fault| fault.starts_with(named)), "{named}: {faults:?}");
        }
        let many: Value = (0..65).map(|at| (format!("s{at}"), json!("read"))).collect();
        assert_eq!(read(many).1, ["stores has 65 stores: the limit is 64"]);
        assert_eq!(read(json!([])).1.len(), 1);
    }
}
