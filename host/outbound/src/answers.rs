//! What a server answers: values, numbers, and why it refuses a command.

use std::fmt;

use bytes::Bytes;
use gristmill_sandbox::{KeyPage, STORE_KEY_BYTES_MAX, Swapped};
use redis::{RedisError, Value};

use crate::commands::next_cursor;

/// Maximum characters of a server's own text that a plugin gets.
const TEXT_CHARS: usize = 200;

/// The beginnings of texts with the code `ERR` that are about a key's value, rather than about the
/// server.
const ABOUT_VALUES: [&str; 2] =
    ["value is not an integer or out of range", "increment or decrement would overflow"];

/// A server's refusal of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    code: String,
    text: String,
}

impl Refusal {
    /// The first refusal among the answers. None if the connection failed instead.
    pub(crate) fn of(error: &RedisError) -> Option<Self> {
        let errors = error.clone().into_server_errors()?;
        let (_, error) = errors.first()?;
        Some(Self { code: cut(error.code()), text: cut(error.details().unwrap_or_default()) })
    }

    /// Whether the value of the key is not what the command needs.
    pub(crate) fn is_about_value(&self) -> bool {
        match self.code.as_str() {
            "WRONGTYPE" => true,
            "ERR" => ABOUT_VALUES.iter().any(|text| self.text.starts_with(text)),
            _ => false,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.text)
    }
}

/// The beginning of a server's text, without control characters.
fn cut(text: &str) -> String {
    let shown = |char: char| if char.is_control() { ' ' } else { char };
    text.chars().take(TEXT_CHARS).map(shown).collect()
}

/// The answers to `GETRANGE` for `count` keys, with none for an empty value. None if they are
/// others.
pub(crate) fn filled_values(answer: Vec<Value>, count: usize) -> Option<Vec<Option<Bytes>>> {
    let value = |value| match value {
        Value::BulkString(bytes) => Some((!bytes.is_empty()).then(|| Bytes::from(bytes))),
        _ => None,
    };
    (answer.len() == count).then(|| answer.into_iter().map(value).collect())?
}

/// The answers to a transaction with `EXISTS` and `GETRANGE` for each of `count` keys. None if they
/// are others.
pub(crate) fn values(mut answer: Vec<Value>, count: usize) -> Option<Vec<Option<Bytes>>> {
    let Some(Value::Array(found)) = answer.pop() else { return None };
    let (first, queued) = answer.split_first()?;
    let is_queued = |value: &Value| matches!(value, Value::SimpleString(text) if text == "QUEUED");
    let is_begun = *first == Value::Okay && queued.iter().all(is_queued);
    if !is_begun || queued.len() != 2 * count || found.len() != 2 * count {
        return None;
    }
    let mut values = Vec::with_capacity(count);
    let mut found = found.into_iter();
    while let (Some(there), Some(value)) = (found.next(), found.next()) {
        values.push(match (there, value) {
            (Value::Int(1), Value::BulkString(bytes)) => Some(Bytes::from(bytes)),
            (Value::Int(0), Value::BulkString(bytes)) if bytes.is_empty() => None,
            _ => return None,
        });
    }
    Some(values)
}

/// The answer to `SCAN`, without the prefix of the keys and without those that no call can name.
pub(crate) fn key_page(answer: Vec<Value>, prefix: &str) -> Option<KeyPage> {
    let Ok([Value::Array(page)]) = <[Value; 1]>::try_from(answer) else { return None };
    let Ok([Value::BulkString(cursor), Value::Array(found)]) = <[Value; 2]>::try_from(page) else {
        return None;
    };
    let mut keys = Vec::with_capacity(found.len());
    for key in found {
        let Value::BulkString(key) = key else { return None };
        let rest = str::from_utf8(&key).ok().and_then(|key| key.strip_prefix(prefix));
        let named = rest.filter(|rest| (1..=STORE_KEY_BYTES_MAX).contains(&rest.len()));
        keys.extend(named.map(str::to_owned));
    }
    // Redis may tell a key twice.
    keys.sort_unstable();
    keys.dedup();
    let cursor = str::from_utf8(&cursor).ok()?.parse().ok()?;
    Some(KeyPage { keys, next: next_cursor(cursor) })
}

/// The answer to a swap.
pub(crate) fn swapped(answer: Vec<Value>) -> Option<Swapped> {
    let Ok([answer]) = <[Value; 1]>::try_from(answer) else { return None };
    match answer {
        Value::Int(1) => Some(Swapped::Done),
        Value::Nil => Some(Swapped::Other(None)),
        Value::BulkString(value) => Some(Swapped::Other(Some(value.into()))),
        _ => None,
    }
}

/// The answer to one command that gives a whole number.
pub(crate) fn number(answer: &[Value]) -> Option<i64> {
    match answer {
        [Value::Int(number)] => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    #[test]
    fn an_answer_has_a_value_for_each_key() {
        let x = Some(Bytes::from_static(b"x"));
        let read = filled_values(vec![text("x"), text("")], 2);
        assert_eq!(read, Some(vec![x.clone(), None]));
        assert_eq!(filled_values(vec![text("x")], 2), None);
        assert_eq!(filled_values(vec![Value::Nil], 1), None);
        let queued = || Value::SimpleString("QUEUED".to_owned());
        let read = |found: Vec<Value>| {
            let begun = [Value::Okay, queued(), queued(), queued(), queued()];
            values([begun.to_vec(), vec![Value::Array(found)]].concat(), 2)
        };
        let (there, missing) = (Value::Int(1), Value::Int(0));
        let found = vec![there.clone(), text("x"), missing.clone(), text("")];
        assert_eq!(read(found.clone()), Some(vec![x, None]));
        let empty = vec![there.clone(), text(""), missing.clone(), text("")];
        assert_eq!(read(empty), Some(vec![Some(Bytes::new()), None]));
        let absurd = vec![missing.clone(), text("x"), missing.clone(), text("")];
        assert_eq!(read(absurd), None);
        assert_eq!(read(vec![there, text("x")]), None);
        assert_eq!(values(vec![Value::Array(found)], 2), None);
        assert_eq!(values(Vec::new(), 0), None);
        assert_eq!(number(&[Value::Int(7)]), Some(7));
        assert_eq!(number(&[text("7")]), None);
        assert_eq!(number(&[]), None);
    }

    #[test]
    fn a_page_has_the_keys_that_calls_can_name() {
        let page = |cursor: &str, keys: Vec<Value>| {
            key_page(vec![Value::Array(vec![text(cursor), Value::Array(keys)])], "f:")
        };
        let (long, last) = (format!("f:{}", "k".repeat(1025)), Value::BulkString(b"f:\xff".into()));
        let keys = vec![text("f:b"), text("f:a"), text("f:b"), text("f:"), text("g:a")];
        let found = page("7", [keys, vec![text(&long), last]].concat()).unwrap();
        assert_eq!((found.keys, found.next.as_deref()), (vec!["a".into(), "b".into()], Some("7")));
        assert_eq!(page("0", Vec::new()), Some(KeyPage::default()));
        assert_eq!(page("0", vec![Value::Int(1)]), None);
        assert_eq!(page("x", Vec::new()), None);
        assert_eq!(key_page(vec![text("0")], "f:"), None);
        assert_eq!(key_page(Vec::new(), "f:"), None);
    }

    #[test]
    fn a_swap_is_done_or_another_value_is_there() {
        assert_eq!(swapped(vec![Value::Int(1)]), Some(Swapped::Done));
        assert_eq!(swapped(vec![Value::Nil]), Some(Swapped::Other(None)));
        let other = Some(Bytes::from_static(b"x"));
        assert_eq!(swapped(vec![text("x")]), Some(Swapped::Other(other)));
        assert_eq!(swapped(vec![Value::Int(0)]), None);
        assert_eq!(swapped(Vec::new()), None);
    }

    #[test]
    fn a_refusal_has_the_servers_code_and_text() {
        let of = |line: &str| {
            let Ok(answer) = parse_redis_value(line.as_bytes()) else { panic!("{line}") };
            Refusal::of(&answer.extract_error().unwrap_err()).unwrap()
        };
        for about_value in [
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
            "-ERR value is not an integer or out of range\r\n",
            "-ERR increment or decrement would overflow\r\n",
        ] {
            let refusal = of(about_value);
            assert!(refusal.is_about_value());
            assert_eq!(format!("-{refusal}\r\n"), about_value);
        }
        for other in ["-OOM used memory > 'maxmemory'\r\n", "-ERR no\r\n", "-NOAUTH needed\r\n"] {
            assert!(!of(other).is_about_value(), "{other}");
        }
        let broken = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert_eq!(Refusal::of(&broken), None);
    }
}
