//! TOML values as JSON.

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// A value that JSON does not have: the path to it, its place in the text, and why.
pub(super) struct Misfit {
    pub(super) path: String,
    pub(super) offset: usize,
    pub(super) why: &'static str,
}

/// The path of a key below another path.
pub(super) fn join(path: &str, key: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_".contains(char);
    let key = match !key.is_empty() && key.chars().all(is_plain) {
        true => key.to_owned(),
        false => format!("{key:?}"),
    };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// The table as a JSON object. Values that JSON does not have are left out.
pub(super) fn object(
    path: &str,
    table: &DeTable<'_>,
    misfits: &mut Vec<Misfit>,
) -> Map<String, Value> {
    let mut keys = Map::new();
    for (key, item) in table {
        let item = value(&join(path, key.get_ref()), item, misfits);
        keys.extend(item.map(|item| (key.get_ref().to_string(), item)));
    }
    keys
}

/// The value as JSON. None if JSON does not have it, or has not all of it.
pub(super) fn value(
    path: &str,
    spanned: &Spanned<DeValue<'_>>,
    misfits: &mut Vec<Misfit>,
) -> Option<Value> {
    let misfits_before = misfits.len();
    let converted = match spanned.get_ref() {
        DeValue::String(text) => Ok(Value::String(text.clone().into_owned())),
        DeValue::Integer(number) => integer(number).ok_or("is too large a number"),
        DeValue::Float(number) => {
            let number: Option<f64> = number.as_str().parse().ok();
            let finite = number.and_then(Number::from_f64);
            finite.map(Value::Number).ok_or("is not a finite number")
        }
        DeValue::Boolean(flag) => Ok(Value::Bool(*flag)),
        DeValue::Datetime(_) => Err("is a date, which documents do not have: write it as text"),
        DeValue::Array(items) => {
            let item = |(at, item)| value(&format!("{path}[{at}]"), item, misfits);
            Ok(items.iter().enumerate().filter_map(item).collect())
        }
        DeValue::Table(table) => Ok(Value::Object(object(path, table, misfits))),
    };
    match converted {
        Ok(value) => (misfits.len() == misfits_before).then_some(value),
        Err(why) => {
            misfits.push(Misfit { path: path.to_owned(), offset: spanned.span().start, why });
            None
        }
    }
}

fn integer(number: &DeInteger<'_>) -> Option<Value> {
    let (text, radix) = (number.as_str(), number.radix());
    let positive = u64::from_str_radix(text, radix).ok().map(Value::from);
    positive.or_else(|| i64::from_str_radix(text, radix).ok().map(Value::from))
}
