//! The keys and values that a plugin gives, and their bounds.

use std::collections::HashMap;

use gristmill_core::Tensor;

use crate::capability::ids::{Id, ids_of};
pub(super) use crate::stores::{
    STORE_KEY_BYTES_MAX as KEY_BYTES_MAX, STORE_VALUE_BYTES_MAX as VALUE_BYTES_MAX,
};
use crate::stores::{StoreFault, shown};

/// Maximum bytes of all values of a call: they are counted before they are asked for.
pub(in crate::capability) const VALUES_BYTES_MAX: usize = 16 << 20;

/// Maximum keys of a call.
const KEYS_MAX: usize = 4096;

/// The work that a key takes, as the bytes that take as long to be read.
const KEY_WORK_BYTES: usize = 256;

/// Keys without those that stand there before.
pub(super) struct Distinct<'a> {
    pub(super) keys: Vec<&'a str>,
    /// The place of each key of the list among them.
    pub(super) places: Vec<usize>,
}

impl<'a> Distinct<'a> {
    pub(super) fn of(list: &'a [String]) -> Self {
        let mut known_keys = HashMap::with_capacity(list.len());
        let mut keys = Vec::with_capacity(list.len());
        let mut places = Vec::with_capacity(list.len());
        for key in list {
            let place = *known_keys.entry(key.as_str()).or_insert(keys.len());
            if place == keys.len() {
                keys.push(key.as_str());
            }
            places.push(place);
        }
        Self { keys, places }
    }
}

/// The work that a request with these keys takes, as bytes that are read.
pub(super) fn work_of(keys: &[String]) -> usize {
    let bytes: usize = keys.iter().map(String::len).sum();
    bytes + keys.len() * KEY_WORK_BYTES
}

/// The work that a request to set these values takes, as bytes that are read.
pub(super) fn work_of_values(values: &[(&str, &[u8])]) -> usize {
    values.iter().map(|(key, value)| key.len() + value.len() + KEY_WORK_BYTES).sum()
}

/// The bytes of a 64-bit number as decimal text, at most.
const NUMBER_BYTES: usize = 20;

/// Check what keys are to be made of.
pub(super) fn check_ids(prefix: &str, ids: &Tensor) -> Result<(), StoreFault> {
    ids_of("ids", ids).map(drop).map_err(StoreFault::invalid)?;
    if prefix.len() > KEY_BYTES_MAX {
        let bytes = prefix.len();
        let text = format!("a prefix of {bytes} bytes is over the limit of {KEY_BYTES_MAX}");
        return Err(StoreFault::invalid(text));
    }
    check_count(ids.rows())
}

/// The memory that these keys take at most.
pub(super) fn keys_bytes(prefix: &str, ids: &Tensor) -> usize {
    ids.rows() * (size_of::<String>() + prefix.len() + NUMBER_BYTES) + ids.as_bytes().len()
}

/// The keys that begin with `prefix` and end with the elements of `ids`.
pub(super) fn keys_by(prefix: &str, ids: &Tensor) -> Result<Vec<String>, StoreFault> {
    let key = |id| match id {
        Id::Number(number) => Ok([prefix, &number.to_string()].concat()),
        Id::Text(text) => match str::from_utf8(text) {
            Ok(text) => Ok([prefix, text].concat()),
            Err(error) => Err(StoreFault::invalid(format!("a key is not UTF-8: {error}"))),
        },
    };
    ids_of("ids", ids).map_err(StoreFault::invalid)?.map(key).collect()
}

fn check_count(keys: usize) -> Result<(), StoreFault> {
    if keys > KEYS_MAX {
        let text = format!("{keys} keys are over the limit of {KEYS_MAX} for one call");
        return Err(StoreFault::invalid(text));
    }
    Ok(())
}

pub(super) fn check_keys(keys: &[String]) -> Result<(), StoreFault> {
    check_count(keys.len())?;
    keys.iter().try_for_each(|key| check_key(key))
}

/// Check the cursor of a page of keys: its length alone.
pub(super) fn check_cursor(cursor: &str) -> Result<(), StoreFault> {
    match cursor.len() {
        ..=KEY_BYTES_MAX => Ok(()),
        bytes => Err(StoreFault::invalid(format!(
            "a cursor of {bytes} bytes is over the limit of {KEY_BYTES_MAX}"
        ))),
    }
}

pub(super) fn check_key(key: &str) -> Result<(), StoreFault> {
    match key.len() {
        0 => Err(StoreFault::invalid("a key is empty")),
        1..=KEY_BYTES_MAX => Ok(()),
        bytes => Err(StoreFault::invalid(format!(
            "the key {:?} of {bytes} bytes is over the limit of {KEY_BYTES_MAX}",
            shown(key)
        ))),
    }
}

pub(super) fn check_values(
    values: &[(&str, &[u8])],
    ttl_ms: Option<u64>,
) -> Result<(), StoreFault> {
    check_count(values.len())?;
    for (key, value) in values {
        check_key(key)?;
        check_value(value, ttl_ms)?;
    }
    let bytes: usize = values.iter().map(|(_, value)| value.len()).sum();
    if bytes > VALUES_BYTES_MAX {
        return Err(StoreFault::invalid(format!(
            "{} values of {bytes} bytes together are over the limit of {VALUES_BYTES_MAX} for one \
             call: set fewer at once",
            values.len()
        )));
    }
    Ok(())
}

pub(super) fn check_value(value: &[u8], ttl_ms: Option<u64>) -> Result<(), StoreFault> {
    if value.len() > VALUE_BYTES_MAX {
        let bytes = value.len();
        let text = format!("a value of {bytes} bytes is over the limit of {VALUE_BYTES_MAX}");
        return Err(StoreFault::invalid(text));
    }
    match ttl_ms {
        Some(0) => Err(StoreFault::invalid("ttl-ms is 0: must be at least 1")),
        Some(ttl_ms) if i64::try_from(ttl_ms).is_err() => {
            Err(StoreFault::invalid(format!("ttl-ms is {ttl_ms}: must be at most {}", i64::MAX)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use gristmill_core::{BufferPool, Dtype, push_text};

    use super::*;

    #[test]
    fn keys_and_values_have_bounds() {
        let text = |checked: Result<(), StoreFault>| checked.unwrap_err().text;
        check_keys(&["a".to_owned(), "b".repeat(KEY_BYTES_MAX)]).unwrap();
        assert_eq!(text(check_keys(&["a".to_owned(), String::new()])), "a key is empty");
        let many = vec!["a".to_owned(); KEYS_MAX + 1];
        assert_eq!(text(check_keys(&many)), "4097 keys are over the limit of 4096 for one call");
        let long = text(check_key(&"k".repeat(KEY_BYTES_MAX + 1)));
        assert!(long.ends_with("of 1025 bytes is over the limit of 1024"), "{long}");
        check_value(&[0; 9], Some(1)).unwrap();
        assert!(text(check_value(&[], Some(0))).contains("ttl-ms is 0"));
        assert!(text(check_value(&[], Some(u64::MAX))).contains("must be at most"));
        let large = text(check_value(&vec![0; VALUE_BYTES_MAX + 1], None));
        assert_eq!(large, "a value of 1048577 bytes is over the limit of 1048576");
        let value = vec![0; VALUE_BYTES_MAX];
        let values = vec![("k", value.as_slice()); 17];
        check_values(&values[..16], None).unwrap();
        let many = text(check_values(&values, None));
        assert!(many.starts_with("17 values of 17825792 bytes together are over"), "{many}");
        check_cursor(&"k".repeat(KEY_BYTES_MAX)).unwrap();
        check_cursor(&"k".repeat(KEY_BYTES_MAX + 1)).unwrap_err();
    }

    #[test]
    fn ids_end_keys() {
        let tensor = |dtype, shape: &[usize], bytes: &[u8]| {
            Tensor::new(dtype, shape.into(), BufferPool::new(0).copy_from(bytes)).unwrap()
        };
        let numbers = [7, i64::MIN].map(i64::to_le_bytes).concat();
        let numbers = tensor(Dtype::Int64, &[2], &numbers);
        check_ids("p:", &numbers).unwrap();
        let keys = keys_by("p:", &numbers).unwrap();
        assert_eq!(keys, ["p:7", "p:-9223372036854775808"]);
        assert!(keys.iter().map(String::capacity).sum::<usize>() <= keys_bytes("p:", &numbers));
        let mut texts = Vec::new();
        ["a", "ü"].iter().for_each(|text| push_text(&mut texts, text.as_bytes()));
        assert_eq!(keys_by("", &tensor(Dtype::String, &[2], &texts)).unwrap(), ["a", "ü"]);
        let text = |prefix: &str, ids: &Tensor| check_ids(prefix, ids).unwrap_err().text;
        let floats = tensor(Dtype::Float32, &[1], &[0; 4]);
        assert!(text("", &floats).contains("with the shape [1]: must be int64 or strings"));
        assert!(text("", &tensor(Dtype::Int64, &[1, 1], &[0; 8])).contains("one dimension"));
        let many = tensor(Dtype::Int64, &[KEYS_MAX + 1], &vec![0; 8 * (KEYS_MAX + 1)]);
        assert!(text("", &many).contains("over the limit of 4096"));
        assert!(text(&"k".repeat(KEY_BYTES_MAX + 1), &numbers).contains("a prefix of 1025 bytes"));
    }

    #[test]
    fn a_key_that_stands_several_times_is_asked_for_once() {
        let list = ["b", "a", "b"].map(str::to_owned);
        let Distinct { keys, places } = Distinct::of(&list);
        assert_eq!((keys, places), (vec!["b", "a"], vec![0, 1, 0]));
        assert_eq!(work_of(&list), 3 + 3 * KEY_WORK_BYTES);
    }
}
