//! What has changed between two readings. Pure.

use serde_json::{Map, Value};

/// What has changed, as a merge patch (RFC 7396). None if nothing has. A value that became null is
/// removed by it, because such a patch cannot set null.
pub(super) fn changes(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return Some(after.clone());
    };
    let mut patch = Map::new();
    for (name, value) in after {
        let change = match before.get(name) {
            Some(before) => changes(before, value),
            None => Some(value.clone()),
        };
        patch.extend(change.map(|change| (name.clone(), change)));
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    patch.extend(gone.map(|name| (name.clone(), Value::Null)));
    Some(Value::Object(patch))
}

/// The lines of Prometheus' text whose values have changed. None if the text has other series.
pub(super) fn changed_lines(before: &str, after: &str) -> Option<String> {
    let (mut before, mut changed) = (before.lines(), String::new());
    for line in after.lines() {
        let old = before.next()?;
        if old != line {
            if series(old) != series(line) {
                return None;
            }
            changed.push_str(line);
            changed.push('\n');
        }
    }
    before.next().is_none().then_some(changed)
}

/// The line without its value.
fn series(line: &str) -> Option<&str> {
    line.rsplit_once(' ').map(|(series, _)| series)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_has_changed_is_in_a_patch() {
        let before = json!({ "a": { "b": 1, "c": [1, 2], "d": null }, "e": 1, "f": {} });
        assert_eq!(changes(&before, &before), None);
        let after = json!({ "a": { "b": 2, "c": [1], "d": null }, "f": {}, "g": { "h": true } });
        let patch = json!({ "a": { "b": 2, "c": [1] }, "g": { "h": true }, "e": null });
        assert_eq!(changes(&before, &after), Some(patch));
        assert_eq!(changes(&json!({ "a": 1 }), &json!({ "a": {} })), Some(json!({ "a": {} })));
        assert_eq!(changes(&Value::Null, &json!({ "a": 1 })), Some(json!({ "a": 1 })));
    }

    #[test]
    fn only_lines_with_other_values_are_sent() {
        let before = "# TYPE a counter\na{b=\"c d\"} 1\na{b=\"e\"} 2\n";
        assert_eq!(changed_lines(before, before).as_deref(), Some(""));
        let after = "# TYPE a counter\na{b=\"c d\"} 1\na{b=\"e\"} 3\n";
        assert_eq!(changed_lines(before, after).as_deref(), Some("a{b=\"e\"} 3\n"));
        for other in ["# TYPE a counter\n", "x\n", "# TYPE a counter\na{b=\"f\"} 1\na{b=\"e\"} 2\n"]
        {
            assert_eq!(changed_lines(before, other), None);
            assert_eq!(changed_lines(other, before), None);
        }
    }
}
