//! What a server answers: values, numbers, and why it refuses a command.

use std::fmt;

use bytes::Bytes;
use gristmill_sandbox::{KeyPage, STORE_KEY_BYTES_MAX, Swapped};
use redis::{ErrorKind, RedisError, ServerError, Value};

/// The answers about one key that has a transaction of its own.
pub(crate) const ANSWERS_APART: usize = 4;

/// Maximum characters of a server's own text that a plugin gets.
const TEXT_CHARS: usize = 200;

/// The beginnings of texts with the code `ERR` that are about a key's value, rather than about the
/// server.
const ABOUT_VALUES: [&str; 2] =
    ["value is not an integer or out of range", "increment or decrement would overflow"];

/// A server's refusal of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    code: String,
    text: String,
}

impl Refusal {
    /// The first refusal among the answers. None if the connection failed instead.
    pub(crate) fn of(error: &RedisError) -> Option<Self> {
        let errors = error.clone().into_server_errors()?;
        errors.first().map(|(_, error)| Self::new(error))
    }

    pub(crate) fn new(error: &ServerError) -> Self {
        Self { code: cut(error.code()), text: cut(error.details().unwrap_or_default()) }
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

/// Why a connection failed, and where the operator of this store mends it. It names no address.
pub(crate) fn failure(error: &RedisError, store: &str) -> String {
    let why = match error.kind() {
        _ if error.is_connection_refusal() => "nothing listens at the address of redis",
        _ if error.is_timeout() => "nothing answers at the address of redis",
        ErrorKind::AuthenticationFailed => "the user of redis or the password_file is wrong",
        _ => error.category(),
    };
    format!("{why} ([stores.{store}] in gristmill.toml)")
}

/// The beginning of a server's text, without control characters.
fn cut(text: &str) -> String {
    let shown = |char: char| if char.is_control() { ' ' } else { char };
    text.chars().take(TEXT_CHARS).map(shown).collect()
}

/// The first refusal among answers, and in those of transactions.
pub(crate) fn error_in(answers: &[Value]) -> Option<&ServerError> {
    answers.iter().find_map(|answer| match answer {
        Value::ServerError(error) => Some(error),
        Value::Array(answers) => error_in(answers),
        _ => None,
    })
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

/// Whether this can be the answer to `GETRANGE`.
pub(crate) fn is_value(answer: &[Value]) -> bool {
    matches!(answer, [Value::BulkString(_)])
}

/// Whether these can be the answers about one key that has a transaction of its own.
pub(crate) fn is_value_apart(answer: &[Value]) -> bool {
    let [begun, queued @ .., Value::Array(found)] = answer else { return false };
    let is_begun = *begun == Value::Okay && queued.iter().all(is_queued);
    let is_found = match found.as_slice() {
        [Value::Int(0), Value::BulkString(bytes)] => bytes.is_empty(),
        [Value::Int(1), Value::BulkString(_)] => true,
        _ => false,
    };
    is_begun && queued.len() + 2 == ANSWERS_APART && is_found
}

/// Whether this can be the answer to a command that sets a value.
pub(crate) fn is_set(answer: &[Value]) -> bool {
    matches!(answer, [Value::Okay])
}

/// Whether this can be the answer to a command that gives a whole number.
pub(crate) fn is_number(answer: &[Value]) -> bool {
    number(answer).is_some()
}

fn is_queued(answer: &Value) -> bool {
    matches!(answer, Value::SimpleString(text) if text == "QUEUED")
}

/// The answers to a transaction of its own for each of `count` keys.
pub(crate) fn values_apart(answer: Vec<Value>, count: usize) -> Option<Vec<Option<Bytes>>> {
    let mut answer = answer.into_iter();
    let value = |_| values(answer.by_ref().take(ANSWERS_APART).collect(), 1)?.pop();
    (0..count).map(value).collect()
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
    // The list ends where it began.
    let next = str::from_utf8(&cursor).ok()?.parse::<u64>().ok()?;
    Some(KeyPage { keys, next: (next != 0).then(|| next.to_string()) })
}

/// Whether this can be the answer to a swap.
pub(crate) fn is_swapped(answer: &[Value]) -> bool {
    matches!(answer, [Value::Int(1) | Value::Nil | Value::BulkString(_)])
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

/// How many keys were removed by so many commands. None if these are not their answers.
pub(crate) fn removed(answer: &[Value], count: usize) -> Option<usize> {
    let one = |answer: &Value| match answer {
        Value::Int(number) => usize::try_from(*number).ok(),
        _ => None,
    };
    let sum = |sum: usize, answer| sum.checked_add(one(answer)?);
    (answer.len() == count).then(|| answer.iter().try_fold(0, sum))?
}

/// Whether this can be the answer to a command that removes keys.
pub(crate) fn is_removed(answer: &[Value]) -> bool {
    removed(answer, 1).is_some()
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
        let x_again = x.clone();
        assert_eq!(read(found.clone()), Some(vec![x, None]));
        let empty = vec![there.clone(), text(""), missing.clone(), text("")];
        assert_eq!(read(empty), Some(vec![Some(Bytes::new()), None]));
        let absurd = vec![missing.clone(), text("x"), missing.clone(), text("")];
        assert_eq!(read(absurd), None);
        assert_eq!(read(vec![there, text("x")]), None);
        assert_eq!(values(vec![Value::Array(found)], 2), None);
        assert_eq!(values(Vec::new(), 0), None);
        let apart =
            |found: [Value; 2]| [Value::Okay, queued(), queued(), Value::Array(found.to_vec())];
        let found = [apart([Value::Int(1), text("x")]), apart([Value::Int(0), text("")])].concat();
        assert_eq!(values_apart(found.clone(), 2), Some(vec![x_again, None]));
        assert_eq!(values_apart(found.clone(), 3), None);
        assert!(found.chunks(ANSWERS_APART).all(is_value_apart));
        assert!(!is_value_apart(&found[1..]) && !is_value_apart(&found[..3]));
        assert!(!is_value_apart(&apart([Value::Int(0), text("x")])));
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
        for no_cursor in ["", "-1", "x", "18446744073709551616"] {
            assert_eq!(page(no_cursor, Vec::new()), None, "{no_cursor}");
        }
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
        for answer in [Value::Int(1), Value::Nil, text("x")] {
            assert!(is_swapped(&[answer]));
        }
        for wrong in [vec![Value::Int(0)], vec![Value::Okay], vec![Value::Nil; 2], Vec::new()] {
            assert!(!is_swapped(&wrong), "{wrong:?}");
        }
    }

    #[test]
    fn the_removed_keys_of_all_commands_are_summed() {
        let (none, some) = (Value::Int(0), Value::Int(3));
        assert_eq!(removed(&[some.clone(), none.clone(), some.clone()], 3), Some(6));
        assert_eq!(removed(&[some.clone(), none], 3), None);
        assert!(is_removed(&[some]));
        for wrong in [Value::Int(-1), Value::Nil, text("1")] {
            assert!(!is_removed(&[wrong]));
        }
        assert_eq!(removed(&[const { Value::Int(i64::MAX) }; 3], 3), None);
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

    #[test]
    fn a_failed_connection_says_where_to_look() {
        let text = |kind: std::io::ErrorKind| {
            failure(&RedisError::from(std::io::Error::from(kind)), "features")
        };
        let place = "([stores.features] in gristmill.toml)";
        for (kind, why) in [
            (std::io::ErrorKind::ConnectionRefused, "nothing listens at the address of redis"),
            (std::io::ErrorKind::TimedOut, "nothing answers at the address of redis"),
            (std::io::ErrorKind::BrokenPipe, "I/O error"),
        ] {
            assert_eq!(text(kind), format!("{why} {place}"));
        }
    }
}
