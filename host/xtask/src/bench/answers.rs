//! Answers of two sides, compared before they are measured.

use serde_json::Value;

/// The largest difference of two numbers in the same place; infinite if anything else differs.
pub(super) fn distance(one: &Value, other: &Value) -> f64 {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let float = |number: &serde_json::Number| number.as_f64().unwrap_or(f64::INFINITY);
            (float(one) - float(other)).abs()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            one.iter().zip(other).map(|(one, other)| distance(one, other)).fold(0.0, f64::max)
        }
        (Value::Object(one), Value::Object(other)) if one.len() == other.len() => {
            let pairs = one.iter().map(|(key, one)| Some((one, other.get(key)?)));
            let of_pair = |(one, other)| distance(one, other);
            pairs.map(|pair| pair.map_or(f64::INFINITY, of_pair)).fold(0.0, f64::max)
        }
        (one, other) if one == other => 0.0,
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::distance;

    #[test]
    fn numbers_may_differ_and_nothing_else_may() {
        let one = json!({ "lines": [{ "text": "a", "score": 0.5 }], "none": null });
        let other = json!({ "none": null, "lines": [{ "text": "a", "score": 0.75 }] });
        assert_eq!(distance(&one, &other), 0.25);
        for other in [
            json!({ "lines": [{ "text": "b", "score": 0.5 }], "none": null }),
            json!({ "lines": [], "none": null }),
            json!({ "lines": [{ "text": "a", "score": 0.5 }], "other": null }),
            json!({ "lines": [{ "text": "a", "score": "0.5" }], "none": null }),
        ] {
            assert_eq!(distance(&one, &other), f64::INFINITY, "{other}");
        }
    }
}
