//! The differences that a release makes, as lines for people: `+` for a new thing, `-` for one that
//! goes, `~` for others, with a line below for each value that differs, by its path. Below all of
//! them stands what may do more or less than before.

use serde_json::{Map, Value};

use crate::defaults::Defaults;
use crate::output::{cut, escaped, short_digest};

/// Maximum characters of a value.
const VALUE_CHARS_MAX: usize = 80;

/// Members that say nothing that people chose.
const HIDDEN: [(&str, &[&str]); 5] = [
    // Keys are things of their own.
    ("tenant", &["api_keys"]),
    ("key", &["name", "version"]),
    ("plugin", &["name", "version", "contract", "world", "runtime", "imports"]),
    ("asset", &["name", "version"]),
    ("model", &["name", "version"]),
];

/// The lines for the differences in an answer of the admin API.
pub(crate) fn text(differences: &[Value]) -> String {
    let lines: Vec<_> = differences.iter().flat_map(Thing::lines_of).collect();
    match lines.is_empty() {
        true => "nothing differs\n".into(),
        false => lines.iter().map(|line| format!("{}\n", escaped(line))).collect(),
    }
}

/// The lines for an answer of the admin API to a release: its differences, then its power.
pub(crate) fn of_answer(answer: &Value) -> String {
    let differences = answer["differences"].as_array().map_or(&[][..], Vec::as_slice);
    text(differences) + &power(answer)
}

/// The lines for what may do more (`+`) or less (`-`) after a release, or for what that is unknown
/// (`?`). None if nothing may.
pub(crate) fn power(answer: &Value) -> String {
    let powers = answer["power"].as_array().map_or(&[][..], Vec::as_slice);
    let line = |power: &Value| {
        let mark = match power["trend"].as_str() {
            Some("more") => '+',
            Some("less") => '-',
            _ => '?',
        };
        let [kind, text] = ["kind", "text"].map(|key| power[key].as_str().unwrap_or_default());
        format!("  {mark} {}\n", one_line(&format!("{kind} {}: {text}", name_of(power))))
    };
    match powers.is_empty() {
        true => String::new(),
        false => powers.iter().map(line).fold("power:\n".to_owned(), |all, line| all + &line),
    }
}

/// A text on one line, whatever it has.
fn one_line(text: &str) -> String {
    escaped(text).replace(['\n', '\t'], " ")
}

/// A thing that differs.
struct Thing {
    kind: String,
    defaults: Defaults,
    lines: Vec<String>,
}

impl Thing {
    fn lines_of(difference: &Value) -> Vec<String> {
        let kind = difference["kind"].as_str().unwrap_or_default().to_owned();
        let name = name_of(difference);
        let shown = kind.replace('_', " ");
        let (before, after) = (&difference["before"], &difference["after"]);
        let defaults = Defaults::of(&kind);
        let mut thing = Self { kind, defaults, lines: Vec::new() };
        let head = match (before, after) {
            (_, Value::Null) => return vec![format!("- {shown} {name}")],
            (Value::Null, Value::Object(after)) => {
                thing.new_members(after);
                match thing.kind.as_str() {
                    // A new model has one anyway.
                    "model_config" if thing.lines.is_empty() => return Vec::new(),
                    _ => format!("+ {shown} {name}"),
                }
            }
            (Value::Object(before), Value::Object(after)) => {
                thing.changed_members(before, after);
                match thing.kind.as_str() {
                    "key" => format!("~ {shown} {name}: replaced"),
                    // Only its keys differ, which have lines of their own.
                    "tenant" if thing.lines.is_empty() => return Vec::new(),
                    _ => format!("~ {shown} {name}"),
                }
            }
            _ => format!("~ {shown} {name}"),
        };
        thing.lines.insert(0, head);
        thing.lines
    }

    fn is_hidden(&self, key: &str) -> bool {
        HIDDEN.iter().any(|(kind, hidden)| *kind == self.kind && hidden.contains(&key))
    }

    /// The members of a new thing, but for those that it has anyway.
    fn new_members(&mut self, members: &Map<String, Value>) {
        for (key, value) in members {
            if !self.is_hidden(key) && !self.defaults.has(key, value) {
                self.add_new(&segment(key), value);
            }
        }
    }

    fn changed_members(&mut self, before: &Map<String, Value>, after: &Map<String, Value>) {
        let mut keys: Vec<_> = before.keys().chain(after.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys.into_iter().filter(|key| !self.is_hidden(key)).collect::<Vec<_>>() {
            let [before, after] = [before, after].map(|keys| keys.get(key).unwrap_or(&NONE));
            self.add_changed(&segment(key), before, after);
        }
    }

    fn add_new(&mut self, at: &str, value: &Value) {
        match parts(value) {
            Some(parts) if !parts.is_empty() => {
                parts.iter().for_each(|(part, value)| self.add_new(&format!("{at}{part}"), value));
            }
            _ => self.add_line(at, &shown(value)),
        }
    }

    fn add_changed(&mut self, at: &str, before: &Value, after: &Value) {
        if before == after {
            return;
        }
        let (old, new) = match (parts(before), parts(after)) {
            (Some(old), Some(new)) if !old.is_empty() || !new.is_empty() => (old, new),
            _ => return self.add_line(at, &format!("{} -> {}", shown(before), shown(after))),
        };
        let value = |parts: &[ValuePart<'_>], part: &str| {
            parts
                .iter()
                .find(|(other, _)| other == part)
                .map_or(Value::Null, |value_part| value_part.1.clone())
        };
        let of_new = new.iter().filter(|(part, _)| old.iter().all(|(other, _)| other != part));
        for (part, _) in old.iter().chain(of_new) {
            self.add_changed(&format!("{at}{part}"), &value(&old, part), &value(&new, part));
        }
    }

    /// A line for the value at a path, which begins with a dot.
    fn add_line(&mut self, at: &str, text: &str) {
        self.lines.push(format!("    {}: {text}", at.trim_start_matches('.')));
    }
}

static NONE: Value = Value::Null;

/// A part of a value, with its segment of the path.
type ValuePart<'a> = (String, &'a Value);

/// The parts of which each is shown by itself: the members of an object, and the items of a list
/// that holds more than plain values. Nothing has no parts.
fn parts(value: &Value) -> Option<Vec<ValuePart<'_>>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::Object(keys) => {
            Some(keys.iter().map(|(key, value)| (segment(key), value)).collect())
        }
        Value::Array(items)
            if items.is_empty() || items.iter().any(|item| item.is_object() || item.is_array()) =>
        {
            Some(items.iter().enumerate().map(|(at, item)| (format!("[{at}]"), item)).collect())
        }
        _ => None,
    }
}

/// The segment of a path for a key.
fn segment(key: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_".contains(char);
    match !key.is_empty() && key.chars().all(is_plain) {
        true => format!(".{key}"),
        false => format!(".{}", Value::from(key)),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::String(text) if text.starts_with("sha256:") => short_digest(text),
        value => cut(&value.to_string(), VALUE_CHARS_MAX),
    }
}

/// The owner and the name of a thing.
fn name_of(difference: &Value) -> String {
    let names = ["tenant", "model", "key", "plugin", "asset", "pipeline", "token"];
    let names = names.iter().filter_map(|name| difference[*name].as_str());
    names.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_value_that_differs_is_a_line() {
        let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let pipeline = |settings: Value, samples: Value| {
            json!({ "pre": "p", "settings": settings, "limits": {},
                "instance_reuse": { "mode": "none" }, "samples": samples })
        };
        let differences = [
            json!({ "kind": "model", "model": "m",
                "after": { "name": "m", "digest": digest("1"), "version": 3, "unloaded": false } }),
            json!({ "kind": "model_config", "model": "m",
                "after": { "max_batch_size": 32, "instances": "auto", "providers": [] } }),
            json!({ "kind": "model_config", "model": "n", "after": { "instances": "auto" } }),
            json!({ "kind": "tenant", "tenant": "old", "before": { "open": true } }),
            json!({ "kind": "tenant", "tenant": "keyed",
                "before": { "open": false, "api_keys": [{ "name": "a" }] },
                "after": { "open": false, "api_keys": [{ "name": "b" }] } }),
            json!({ "kind": "key", "tenant": "keyed", "key": "b", "after": { "name": "b" } }),
            json!({ "kind": "key", "tenant": "keyed", "key": "c",
                "before": { "name": "c", "version": 1 }, "after": { "name": "c", "version": 2 } }),
            json!({ "kind": "plugin", "tenant": "keyed", "plugin": "p",
                "before": { "digest": digest("1"), "version": 1, "world": "a" },
                "after": { "digest": digest("2"), "version": 2, "world": "b" } }),
            json!({ "kind": "pipeline", "tenant": "keyed", "pipeline": "main",
                "before": pipeline(json!({ "a": { "b": 1, "c": [1] }, "gone": true, "same": 1 }),
                    json!([{ "name": "x" }])),
                "after": pipeline(json!({ "a": { "b": 1.5, "c": [1, 2] }, "same": 1,
                    "odd key": { "new": "red \u{1b}[31m" } }),
                    json!([{ "name": "y" }, { "name": "z", "status": 200 }])) }),
        ];
        let expected = "\
+ model m
    digest: sha256:111111111111
+ model config m
    max_batch_size: 32
- tenant old
+ key keyed/b
~ key keyed/c: replaced
~ plugin keyed/p
    digest: sha256:111111111111 -> sha256:222222222222
~ pipeline keyed/main
    samples[0].name: \"x\" -> \"y\"
    samples[1].name: none -> \"z\"
    samples[1].status: none -> 200
    settings.a.b: 1 -> 1.5
    settings.a.c: [1] -> [1,2]
    settings.gone: true -> none
    settings.\"odd key\".new: none -> \"red \\u001b[31m\"
";
        assert_eq!(text(&differences), expected);
        assert_eq!(text(&[]), "nothing differs\n");
    }

    #[test]
    fn a_new_document_shows_what_was_given_and_long_values_are_cut() {
        let differences = [json!({ "kind": "pipeline", "tenant": "t", "pipeline": "p",
            "after": { "pre": "a", "settings": { "text": "x".repeat(100), "none": {} },
                "limits": {}, "instance_reuse": { "mode": "tenant" } } })];
        let long = format!("\"{}...", "x".repeat(76));
        let expected = format!(
            "+ pipeline t/p\n    instance_reuse.mode: \"tenant\"\n    pre: \"a\"\n    \
             settings.none: {{}}\n    settings.text: {long}\n"
        );
        assert_eq!(text(&differences), expected);
    }

    #[test]
    fn power_is_below_the_differences_a_line_each() {
        let power = |kind: &str, trend: &str, text: &str| json!({ "kind": kind, "trend": trend, "tenant": "acme", "text": text });
        let mut plugin = power("plugin", "unknown", "imports \u{1b}[31m\n+ nothing");
        plugin["plugin"] = "p".into();
        let answer = json!({
            "differences": [{ "kind": "key", "tenant": "acme", "key": "b", "after": {} }],
            "power": [power("tenant", "more", "may now x"), power("tenant", "less", "y"), plugin],
        });
        let expected = "\
+ key acme/b
power:
  + tenant acme: may now x
  - tenant acme: y
  ? plugin acme/p: imports \\u{1b}[31m + nothing
";
        assert_eq!(of_answer(&answer), expected);
        assert_eq!(super::power(&json!({ "release": 1 })), "");
    }
}
