//! Comparing JSON documents: which values differ, and where.
//!
//! Two whole numbers must be equal. Other numbers may differ by the tolerance, plus the tolerance
//! times the expected number, as in NumPy's `allclose`.

use serde_json::{Map, Number, Value};

/// The most differences that are kept.
const DIFFERENCES_MAX: usize = 20;

/// The most bytes of a value that a difference shows.
const VALUE_BYTES_MAX: usize = 120;

/// A value that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The place of the value, such as `$.top[0].label`.
    pub(super) path: String,
    pub(super) expected: String,
    pub(super) found: String,
}

/// The first differences, and the number of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    pub(super) first: Vec<Difference>,
    pub(super) more: usize,
}

impl Differences {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Add a difference.
    pub(super) fn add(
        &mut self,
        path: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        if self.first.len() == DIFFERENCES_MAX {
            self.more += 1;
            return;
        }
        let (path, expected, found) = (path.into(), cut(expected.into()), cut(found.into()));
        self.first.push(Difference { path, expected, found });
    }

    /// Add the differences between two documents.
    pub(super) fn add_json(&mut self, expected: &Value, found: &Value, tolerance: f64) {
        Comparison { tolerance, differences: self }.values("$", expected, found);
    }
}

struct Comparison<'a> {
    tolerance: f64,
    differences: &'a mut Differences,
}

impl Comparison<'_> {
    fn values(&mut self, path: &str, expected: &Value, found: &Value) {
        match (expected, found) {
            (Value::Object(expected), Value::Object(found)) => self.objects(path, expected, found),
            (Value::Array(expected), Value::Array(found)) => self.lists(path, expected, found),
            (Value::Number(one), Value::Number(other)) if self.are_near(one, other) => {}
            _ if expected == found => {}
            _ => self.differences.add(path, shown(expected), shown(found)),
        }
    }

    fn objects(&mut self, path: &str, expected: &Map<String, Value>, found: &Map<String, Value>) {
        for (key, value) in expected {
            let path = member(path, key);
            match found.get(key) {
                Some(found) => self.values(&path, value, found),
                None => self.differences.add(path, shown(value), "nothing"),
            }
        }
        for (key, value) in found.iter().filter(|(key, _)| !expected.contains_key(*key)) {
            self.differences.add(member(path, key), "nothing", shown(value));
        }
    }

    fn lists(&mut self, path: &str, expected: &[Value], found: &[Value]) {
        if expected.len() != found.len() {
            let (expected, found) = (expected.len(), found.len());
            self.differences.add(path, format!("{expected} items"), format!("{found} items"));
        }
        for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
            self.values(&format!("{path}[{index}]"), expected, found);
        }
    }

    fn are_near(&self, expected: &Number, found: &Number) -> bool {
        let is_whole = |number: &Number| number.is_i64() || number.is_u64();
        if is_whole(expected) && is_whole(found) {
            return expected == found;
        }
        let (Some(expected), Some(found)) = (expected.as_f64(), found.as_f64()) else {
            return false;
        };
        (expected - found).abs() <= self.tolerance + self.tolerance * expected.abs()
    }
}

/// The path of an object's member.
fn member(path: &str, key: &str) -> String {
    let is_word = |key: &str| {
        let first = key.bytes().next();
        first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if is_word(key) { format!("{path}.{key}") } else { format!("{path}[{key:?}]") }
}

fn shown(value: &Value) -> String {
    value.to_string()
}

fn cut(mut text: String) -> String {
    if text.len() > VALUE_BYTES_MAX {
        text.truncate(text.floor_char_boundary(VALUE_BYTES_MAX));
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The differences, each as `path: expected/found`.
    fn between(expected: &Value, found: &Value) -> Vec<String> {
        let mut differences = Differences::default();
        differences.add_json(expected, found, 1e-4);
        let line = |one: &Difference| format!("{}: {}/{}", one.path, one.expected, one.found);
        let mut lines: Vec<_> = differences.first.iter().map(line).collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn numbers_may_differ_by_the_tolerance_but_whole_numbers_may_not() {
        assert!(between(&json!([0.5, 1000.0]), &json!([0.50009, 1000.09])).is_empty());
        assert!(between(&json!([1, 0.0]), &json!([1.00001, 0])).is_empty());
        assert_eq!(between(&json!(0.5), &json!(0.5002)), ["$: 0.5/0.5002"]);
        assert_eq!(between(&json!(100_000), &json!(100_001)), ["$: 100000/100001"]);
        assert_eq!(between(&json!(1.0), &json!("1.0")), ["$: 1.0/\"1.0\""]);
    }

    #[test]
    fn each_difference_is_named_by_its_path() {
        let expected = json!({ "top": [{ "label": 3 }, { "label": 4 }], "a b": 1, "gone": null });
        let found = json!({ "top": [{ "label": 3 }, { "label": 5 }], "a b": 2, "new": [1] });
        let named = between(&expected, &found);
        assert_eq!(
            named,
            [
                "$.gone: null/nothing",
                "$.new: nothing/[1]",
                "$.top[1].label: 4/5",
                "$[\"a b\"]: 1/2",
            ]
        );
    }

    #[test]
    fn lists_of_different_lengths_are_compared_as_far_as_both_go() {
        let named = between(&json!([1, 2, 3]), &json!([1, 7]));
        assert_eq!(named, ["$: 3 items/2 items", "$[1]: 2/7"]);
    }

    #[test]
    fn differences_are_bounded_and_the_others_counted() {
        let mut differences = Differences::default();
        let (ones, twos) = (vec![json!(1); 100], vec![json!(2); 100]);
        differences.add_json(&ones.into(), &twos.into(), 0.0);
        assert_eq!((differences.first.len(), differences.more), (20, 80));
        let mut long = Differences::default();
        long.add("x", "ä".repeat(500), "");
        assert!(long.first[0].expected.len() < 130);
    }
}
