//! Comparing JSON documents: which values differ, and where.
//!
//! Two whole numbers must be equal. Other numbers may differ by the tolerance, plus the tolerance
//! times the expected number, as in NumPy's `allclose`.
//!
//! Invariant: the work is bounded by the size of the documents. The place of a value is written
//! only for the differences that are kept, because a plugin's answer may have keys of any length.

use std::fmt;

use serde_json::{Map, Number, Value};

/// The most differences that are kept.
const MISMATCHES_MAX: usize = 20;

/// The most bytes of a place or a value that a difference shows.
const TEXT_BYTES_MAX: usize = 120;

/// A value that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The place of the value, such as `$.top[0].label`.
    pub path: String,
    /// The expected value.
    pub expected: String,
    /// The value that was found.
    pub found: String,
}

/// The first differences, and the number of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mismatches {
    /// The first ones.
    pub first: Vec<Mismatch>,
    /// How many more there are.
    pub more: usize,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, expected, found } = self;
        write!(f, "{path}: expected {expected}, found {found}")
    }
}

impl Mismatches {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Keep only the first ones, so many.
    pub fn keep(&mut self, most: usize) {
        self.more += self.first.len().saturating_sub(most);
        self.first.truncate(most);
    }

    /// Add a difference.
    pub fn add(
        &mut self,
        path: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        self.add_with(|| (path.into(), expected.into(), found.into()));
    }

    /// Add a difference whose place and values are written only if it is kept.
    fn add_with(&mut self, texts: impl FnOnce() -> (String, String, String)) {
        if self.first.len() == MISMATCHES_MAX {
            self.more += 1;
            return;
        }
        let (path, expected, found) = texts();
        let (path, expected, found) = (cut(path), cut(expected), cut(found));
        self.first.push(Mismatch { path, expected, found });
    }

    /// Add the differences between two documents.
    pub fn add_json(&mut self, expected: &Value, found: &Value, tolerance: f64) {
        let mut comparison = Comparison { tolerance, mismatches: self, place: Vec::new() };
        comparison.values(expected, found);
    }

    /// Add the differences between the value at a place of a document and the expected one.
    /// `pointer` is a JSON pointer.
    pub fn add_at(&mut self, pointer: &str, expected: &Value, document: &Value, tolerance: f64) {
        let names: Vec<String> = pointer
            .split('/')
            .skip(1)
            .map(|name| name.replace("~1", "/").replace("~0", "~"))
            .collect();
        let mut place = Vec::with_capacity(names.len());
        let mut found = Some(document);
        for name in &names {
            // As RFC 6901 has them: one place has one pointer.
            let is_index = name == "0" || name.starts_with(|char| ('1'..='9').contains(&char));
            let is_item = is_index && found.is_some_and(Value::is_array);
            let index = name.parse().ok().filter(|_| is_item);
            place.push(index.map_or(Step::Member(name), Step::Item));
            found = found.and_then(|value| match value {
                Value::Object(members) => members.get(name),
                Value::Array(items) => items.get(index?),
                _ => None,
            });
        }
        let mut comparison = Comparison { tolerance, mismatches: self, place };
        match found {
            Some(found) => comparison.values(expected, found),
            None => comparison.differs(|| (expected.to_string(), "nothing".into())),
        }
    }
}

/// A step from a value to a value within it.
#[derive(Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Item(usize),
}

struct Comparison<'a, 'b> {
    tolerance: f64,
    mismatches: &'a mut Mismatches,
    /// The place of the values that are compared.
    place: Vec<Step<'b>>,
}

impl<'b> Comparison<'_, 'b> {
    fn values(&mut self, expected: &'b Value, found: &'b Value) {
        match (expected, found) {
            (Value::Object(expected), Value::Object(found)) => self.objects(expected, found),
            (Value::Array(expected), Value::Array(found)) => self.lists(expected, found),
            (Value::Number(one), Value::Number(other)) if self.are_near(one, other) => {}
            _ if expected == found => {}
            _ => self.differs(|| (expected.to_string(), found.to_string())),
        }
    }

    fn objects(&mut self, expected: &'b Map<String, Value>, found: &'b Map<String, Value>) {
        for (key, value) in expected {
            self.place.push(Step::Member(key));
            match found.get(key) {
                Some(found) => self.values(value, found),
                None => self.differs(|| (value.to_string(), "nothing".into())),
            }
            self.place.pop();
        }
        for (key, value) in found.iter().filter(|(key, _)| !expected.contains_key(*key)) {
            self.place.push(Step::Member(key));
            self.differs(|| ("nothing".into(), value.to_string()));
            self.place.pop();
        }
    }

    fn lists(&mut self, expected: &'b [Value], found: &'b [Value]) {
        if expected.len() != found.len() {
            let items = |list: &[Value]| format!("{} items", list.len());
            self.differs(|| (items(expected), items(found)));
        }
        for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
            self.place.push(Step::Item(index));
            self.values(expected, found);
            self.place.pop();
        }
    }

    fn differs(&mut self, texts: impl FnOnce() -> (String, String)) {
        let place = &self.place;
        self.mismatches.add_with(|| {
            let (expected, found) = texts();
            (path(place), expected, found)
        });
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

/// The place as text.
fn path(place: &[Step<'_>]) -> String {
    let is_word = |key: &str| {
        let first = key.bytes().next();
        first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let mut path = String::from("$");
    for step in place {
        match step {
            Step::Item(index) => path.push_str(&format!("[{index}]")),
            Step::Member(key) if is_word(key) => path.push_str(&format!(".{key}")),
            Step::Member(key) => path.push_str(&format!("[{key:?}]")),
        }
    }
    path
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push_str("...");
        // It is kept, and what it was made of may be long.
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(mismatches: &Mismatches) -> Vec<String> {
        let mut texts: Vec<_> = mismatches.first.iter().map(ToString::to_string).collect();
        texts.sort_unstable();
        texts
    }

    fn between(expected: &Value, found: &Value) -> Vec<String> {
        let mut mismatches = Mismatches::default();
        mismatches.add_json(expected, found, 1e-4);
        texts(&mismatches)
    }

    #[test]
    fn numbers_may_differ_by_the_tolerance_but_whole_numbers_may_not() {
        assert!(between(&json!([0.5, 1000.0]), &json!([0.50009, 1000.09])).is_empty());
        assert!(between(&json!([1, 0.0]), &json!([1.00001, 0])).is_empty());
        assert_eq!(between(&json!(0.5), &json!(0.5002)), ["$: expected 0.5, found 0.5002"]);
        let whole = between(&json!(100_000), &json!(100_001));
        assert_eq!(whole, ["$: expected 100000, found 100001"]);
        assert_eq!(between(&json!(1.0), &json!("1.0")), ["$: expected 1.0, found \"1.0\""]);
    }

    #[test]
    fn each_difference_is_named_by_its_path() {
        let expected = json!({ "top": [{ "label": 3 }, { "label": 4 }], "a b": 1, "gone": null });
        let found = json!({ "top": [{ "label": 3 }, { "label": 5 }], "a b": 2, "new": [1] });
        let named = between(&expected, &found);
        assert_eq!(
            named,
            [
                "$.gone: expected null, found nothing",
                "$.new: expected nothing, found [1]",
                "$.top[1].label: expected 4, found 5",
                "$[\"a b\"]: expected 1, found 2",
            ]
        );
    }

    #[test]
    fn lists_of_different_lengths_are_compared_as_far_as_both_go() {
        let named = between(&json!([1, 2, 3]), &json!([1, 7]));
        assert_eq!(named, ["$: expected 3 items, found 2 items", "$[1]: expected 2, found 7"]);
    }

    #[test]
    fn a_value_is_found_by_its_pointer() {
        let document = json!({ "top": [{ "label": 3, "p": 0.5 }], "a/b~": { "1": "x" } });
        let at = |pointer: &str, expected: Value| {
            let mut mismatches = Mismatches::default();
            mismatches.add_at(pointer, &expected, &document, 0.1);
            texts(&mismatches)
        };
        for (pointer, expected) in [
            ("/top/0/label", json!(3)),
            ("/top/0/p", json!(0.6)),
            ("/a~1b~0/1", json!("x")),
            ("", document.clone()),
        ] {
            assert!(at(pointer, expected).is_empty(), "{pointer}");
        }
        for (pointer, expected_text) in [
            ("/top/0/label", "$.top[0].label: expected 9, found 3"),
            ("/top/1/label", "$.top[1].label: expected 9, found nothing"),
            ("/top/x", "$.top.x: expected 9, found nothing"),
            ("/a~1b~0/1", "$[\"a/b~\"][\"1\"]: expected 9, found \"x\""),
        ] {
            assert_eq!(at(pointer, json!(9)), [expected_text]);
        }
        let inside = at("/top", json!([{ "label": 4, "p": 0.5 }]));
        assert_eq!(inside, ["$.top[0].label: expected 4, found 3"]);
    }

    #[test]
    fn differences_are_bounded_and_the_others_counted() {
        let mut mismatches = Mismatches::default();
        let (ones, twos) = (vec![json!(1); 100], vec![json!(2); 100]);
        mismatches.add_json(&ones.into(), &twos.into(), 0.0);
        assert_eq!((mismatches.first.len(), mismatches.more), (20, 80));
        let long = "ä".repeat(500);
        let found = &between(&json!({}), &json!({ (long.clone()): long }))[0];
        assert!(found.len() < 300, "{found}");
    }

    /// Each place would be a text of a megabyte.
    #[test]
    fn a_long_key_over_many_values_costs_no_more_than_its_length() {
        let key = "k".repeat(1 << 20);
        let under = |value: i64| json!({ (key.clone()): vec![value; 200_000] });
        let mut mismatches = Mismatches::default();
        mismatches.add_json(&under(1), &under(2), 0.0);
        assert_eq!((mismatches.first.len(), mismatches.more), (20, 199_980));
    }
}
