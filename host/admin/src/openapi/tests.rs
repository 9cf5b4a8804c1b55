use std::collections::{BTreeMap, BTreeSet};

use gristmill_transport::Allowed;
use http::Method;
use serde_json::Value;

use super::document;
use crate::operation::PREFIX;
use crate::routes::resource_at;

/// The routes, as the server has them.
const ROUTES: &str = include_str!("../routes.rs");

/// The paths that do not belong to a resource.
const PUBLIC: [&str; 2] = ["/admin/v1/docs", "/admin/v1/openapi.json"];

/// The methods of each path of the document.
fn described() -> BTreeMap<String, BTreeSet<Method>> {
    let document = document().unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let methods = |item: &Value| {
        let keys = item.as_object().unwrap().keys();
        keys.map(|key| key.to_uppercase().parse().unwrap()).collect()
    };
    paths.map(|(path, item)| (path.clone(), methods(item))).collect()
}

#[test]
fn every_route_and_method_is_described_and_nothing_else() {
    let mut described = described();
    for path in PUBLIC {
        assert_eq!(described.remove(path), Some([Method::GET].into()), "{path}");
    }
    let routes = ROUTES.lines().map(str::trim).filter(|line| line.starts_with("[\""));
    let mut routed = BTreeSet::new();
    for line in routes {
        let pattern = line.strip_prefix('[').unwrap().split_once("] =>").unwrap().0;
        let segments = pattern.split(", ").map(|part| match part.strip_prefix('"') {
            Some(text) => text.trim_end_matches('"').to_owned(),
            None => format!("{{{part}}}"),
        });
        routed.insert(format!("{PREFIX}{}", segments.collect::<Vec<_>>().join("/")));
    }
    assert_eq!(described.keys().cloned().collect::<BTreeSet<_>>(), routed);
    let all_methods = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    for (path, methods) in described {
        let resource = resource_at(&path.replace(['{', '}'], "")).unwrap();
        let takes = |method: &&Method| resource.allowed().check(method).is_ok();
        let taken: BTreeSet<_> = all_methods.iter().filter(takes).cloned().collect();
        assert_eq!(methods, taken, "{path}");
    }
    assert!(Allowed::Get.check(&Method::PUT).is_err());
}

/// All values under the key anywhere in the document.
fn under<'a>(value: &'a Value, key: &str, values: &mut Vec<&'a Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| under(item, key, values)),
        Value::Object(keys) => {
            values.extend(keys.get(key));
            keys.values().for_each(|value| under(value, key, values));
        }
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_operation_has_a_name_of_its_own() {
    let document = document().unwrap();
    let mut references = Vec::new();
    under(&document, "$ref", &mut references);
    assert!(references.len() > 100, "{references:?}");
    for reference in references {
        let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
    let mut ids = Vec::new();
    under(&document["paths"], "operationId", &mut ids);
    let count = ids.len();
    let ids: BTreeSet<_> = ids.into_iter().map(Value::to_string).collect();
    assert_eq!(ids.len(), count, "{ids:?}");
}

#[test]
fn ranges_are_those_that_documents_are_checked_against() {
    let schemas = document().unwrap()["components"]["schemas"].take();
    let limits = gristmill_state::limit_ranges(&gristmill_core::PipelineLimits::default());
    for limit in limits {
        let schema = &schemas["Limits"]["properties"][limit.key];
        assert_eq!(schema["minimum"].as_u64(), Some(limit.min), "{}", limit.key);
        // The other three depend on the settings of the server and on each other.
        if !["memory_bytes", "passed_bytes", "response_bytes"].contains(&limit.key) {
            assert_eq!(schema["maximum"].as_u64(), Some(limit.max), "{}", limit.key);
        }
    }
    let config = schemas["ModelConfig"]["properties"].as_object().unwrap();
    let mut bounds = 0;
    for (key, schema) in config {
        for (bound, beyond) in [("minimum", -1), ("maximum", 1)] {
            let Some(value) = schema[bound].as_i64() else { continue };
            let read = |value: i64| {
                // Some ranges end where other keys say.
                let mut document = serde_json::json!({
                    "max_batch_size": 1, "priority_levels": 64, "max_queue_rows": 10_000_000,
                    "max_queue_bytes": 1_u64 << 40,
                });
                document[key.as_str()] = value.into();
                let Value::Object(document) = document else { unreachable!() };
                let read = gristmill_state::ModelConfig::read(document);
                read.err().map(|error| error.to_string()).unwrap_or_default()
            };
            let fault = |value: i64| read(value).contains(&format!("{key} is {value}: must be"));
            assert!(!fault(value), "{key}: {}", read(value));
            assert!(fault(value + beyond), "{key}: {}", read(value + beyond));
            bounds += 1;
        }
    }
    assert!(bounds > 20, "{bounds}");
}
