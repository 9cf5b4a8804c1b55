//! The assets that a pipeline's plugins may open: the key `assets` of its document and of its
//! candidate.

use std::collections::BTreeMap;

use gristmill_sandbox::{ASSETS_MAX, asset_name_fault};
use serde_json::Value;

use crate::release::document::{Document, shown};
use crate::release::named_version::NamedVersion;

/// The key.
pub(crate) const ASSETS: &str = "assets";

/// Assets of the tenant, by the names under which plugins open them.
pub type AssetNames = BTreeMap<String, NamedVersion>;

/// The value of the key, if it is given. Members with a fault are left out.
pub(crate) fn read_assets(document: &mut Document) -> Option<AssetNames> {
    let members = document.object(ASSETS)?;
    let count = members.len();
    if count > ASSETS_MAX {
        document.fault(ASSETS, format_args!(" has {count} assets: the limit is {ASSETS_MAX}"));
    }
    let mut assets = AssetNames::new();
    for (name, value) in members.iter().take(ASSETS_MAX) {
        match read_member(name, value) {
            Ok(asset) => {
                assets.insert(name.clone(), asset);
            }
            Err(text) => document.member_fault(ASSETS, name, text),
        }
    }
    Some(assets)
}

/// A member, or what is wrong with it.
fn read_member(name: &str, value: &Value) -> Result<NamedVersion, String> {
    if let Some(fault) = asset_name_fault(name) {
        return Err(format!("{ASSETS}: {} {fault}", shown(&name.into())));
    }
    let Some(text) = value.as_str() else {
        return Err(format!(
            "{ASSETS}: {name:?} is {}: must be the name of an asset, as \"prices\" or \"prices@16\"",
            shown(value)
        ));
    };
    text.parse().map_err(|error| format!("{ASSETS}: {name:?}: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(assets: Value) -> (Option<AssetNames>, Vec<String>) {
        let Value::Object(keys) = json!({ "assets": assets }) else { unreachable!() };
        let mut document = Document::new(keys);
        let assets = read_assets(&mut document);
        (assets, document.finish().into_texts())
    }

    #[test]
    fn an_asset_is_named_with_or_without_a_version() {
        let given_document = json!({ "prices.json": "prices", "more/old.json": "prices@3" });
        let (assets, faults) = read(given_document.clone());
        assert_eq!(faults, [""; 0]);
        assert_eq!(serde_json::to_value(assets.unwrap()).unwrap(), given_document);
        assert_eq!(read(Value::Null), (None, Vec::new()));
        assert_eq!(read(json!({})), (Some(AssetNames::new()), Vec::new()));
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let (assets, faults) = read(json!({
            "ok": "prices", "../x": "prices", "b": 7, "c": "Prices", "d": "prices@0",
        }));
        assert_eq!((assets.unwrap().len(), faults.len()), (1, 4), "{faults:?}");
        for named in [
            "assets: \"../x\" must be 1 to 128",
            "assets: \"b\" is 7: must be the name of an asset",
            "assets: \"c\": \"Prices\" is not a valid name",
            "assets: \"d\": \"prices@0\" names no version",
        ] {
            assert!(faults.iter().any(|fault| fault.starts_with(named)), "{named}: {faults:?}");
        }
        let many: Value = (0..257).map(|at| (format!("f{at}"), json!("a"))).collect();
        assert_eq!(read(many).1, ["assets has 257 assets: the limit is 256"]);
    }
}
