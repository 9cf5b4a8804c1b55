//! The values that a document has although they were not given, by the kind of the thing. The
//! server writes them all out when it is asked for a document.

use gristmill_state::ModelConfig;
use serde_json::{Map, Value, json};

/// The defaults of a kind of things, where they are not empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Defaults(Value);

impl Defaults {
    /// The kind as differences name it.
    pub(crate) fn of(kind: &str) -> Self {
        Self(match kind {
            "tenant" => json!({
                "open": false,
                "weight": 1,
                "batch_with": "any",
                "try_page": false,
                "plugin_version_policy": { "latest": { "num_versions": 1 } },
            }),
            "pipeline" => json!({ "instance_reuse": { "mode": "none" }, "debug": false }),
            "model" => json!({ "unloaded": false }),
            // Without defaults more is shown and sent, and nothing else happens.
            "model_config" => serde_json::to_value(ModelConfig::default()).unwrap_or_default(),
            _ => Value::Null,
        })
    }

    /// Whether the key has this value also if it is not given. A key without a known default has
    /// none, or is empty.
    pub(crate) fn has(&self, key: &str, value: &Value) -> bool {
        match &self.0[key] {
            Value::Null => match value {
                Value::Null => true,
                Value::Array(items) => items.is_empty(),
                Value::Object(keys) => keys.is_empty(),
                _ => false,
            },
            default => default == value,
        }
    }

    /// Whether putting `given` would leave a thing as it is. False also where only the server
    /// knows it.
    pub(crate) fn are_same(&self, wanted: &Map<String, Value>, current: &Value) -> bool {
        let none = Map::new();
        let current = current.as_object().unwrap_or(&none);
        wanted.keys().chain(current.keys()).all(|key| match (wanted.get(key), current.get(key)) {
            (Some(wanted), Some(current)) => wanted == current,
            (Some(only), None) | (None, Some(only)) => self.has(key, only),
            (None, None) => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_is_the_default() {
        let same = |kind, wanted: Value, current| {
            Defaults::of(kind).are_same(wanted.as_object().unwrap(), &current)
        };
        let read = json!({ "open": true, "weight": 1, "models": [] });
        assert!(same("tenant", json!({ "open": true }), read.clone()));
        assert!(same("tenant", json!({ "open": true, "weight": 1, "models": [] }), read.clone()));
        assert!(!same("tenant", json!({ "open": true, "weight": 2 }), read.clone()));
        assert!(!same("tenant", json!({}), read.clone()));
        assert!(!same("tenant", json!({ "open": true, "new": 1 }), read));
        // Keys of a newer server.
        assert!(same("tenant", json!({}), json!({ "open": false, "quota": null })));
        assert!(!same("tenant", json!({}), json!({ "open": false, "quota": { "rows": 1 } })));

        let read = json!({ "pre": "p", "settings": {}, "limits": {},
            "instance_reuse": { "mode": "none" } });
        assert!(same("pipeline", json!({ "pre": "p" }), read.clone()));
        assert!(!same("pipeline", json!({ "pre": "p", "settings": { "a": {} } }), read));

        let config = serde_json::to_value(ModelConfig::default()).unwrap();
        assert!(same("model_config", json!({}), config.clone()));
        assert!(same("model_config", json!({ "max_batch_size": "auto" }), config.clone()));
        assert!(!same("model_config", json!({ "memory_arena": false }), config));
        assert!(!same("model_config", json!({}), json!({ "memory_arena": false })));
    }
}
