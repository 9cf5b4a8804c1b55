//! The commands of Redis for what plugins ask. Their answers are read in `answers`.

use gristmill_sandbox::{STORE_PAGE_KEYS, STORE_VALUE_BYTES_MAX, Swap, WantedValues};
use redis::Pipeline;

/// Sets a value if the key has the one that is known. `pcall` gives the errors of Redis as they
/// are, in all of its versions.
const SWAP: &str = "\
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then return value end
if value ~= (ARGV[1] == '1' and ARGV[2]) then
  return value and string.sub(value, 1, ARGV[4])
end
local set = redis.pcall('SET', KEYS[1], ARGV[3])
return set.err and set or 1";

/// The cursor with which a list of keys begins, and ends.
const FIRST_CURSOR: u64 = 0;

/// The values of keys, all of one moment unless empty values may be told as none.
pub(crate) fn get_many(prefix: &str, wanted: WantedValues<'_>) -> Pipeline {
    let WantedValues { keys, most_bytes, none_if_empty } = wanted;
    let mut pipeline = Pipeline::with_capacity(2 * keys.len() + 2);
    // Redis gives an empty text for a key that it does not have. In a transaction it also says
    // whether the key is there. Not `Pipeline::atomic`: it panics if `MULTI` is refused.
    if !none_if_empty {
        pipeline.cmd("MULTI");
    }
    for key in keys {
        let key = format!("{prefix}{key}");
        if !none_if_empty {
            pipeline.cmd("EXISTS").arg(key.as_str());
        }
        pipeline.cmd("GETRANGE").arg(key.as_str()).arg(0).arg(most_bytes);
    }
    if !none_if_empty {
        pipeline.cmd("EXEC");
    }
    pipeline
}

/// Set values.
pub(crate) fn set(prefix: &str, values: &[(&str, &[u8])], ttl_ms: Option<u64>) -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(values.len());
    for (key, value) in values {
        pipeline.cmd("SET").arg(format!("{prefix}{key}")).arg(*value);
        if let Some(ttl_ms) = ttl_ms {
            pipeline.arg("PX").arg(ttl_ms);
        }
    }
    pipeline
}

/// Add to a number.
pub(crate) fn increment(prefix: &str, key: &str, delta: i64) -> Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.cmd("INCRBY").arg(format!("{prefix}{key}")).arg(delta);
    pipeline
}

/// Forget keys.
pub(crate) fn remove(prefix: &str, keys: &[&str]) -> Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.cmd("DEL");
    for key in keys {
        pipeline.arg(format!("{prefix}{key}"));
    }
    pipeline
}

/// A page of the keys that begin with a prefix. None if that is no cursor. One step looks at so
/// many keys of the whole database, of whomever they are.
pub(crate) fn keys(prefix: &str, cursor: Option<&str>) -> Option<Pipeline> {
    let cursor: u64 = cursor.map_or(Ok(FIRST_CURSOR), str::parse).ok()?;
    let mut pipeline = redis::pipe();
    pipeline.cmd("SCAN").arg(cursor).arg("MATCH").arg(pattern_of(prefix));
    pipeline.arg("COUNT").arg(STORE_PAGE_KEYS);
    Some(pipeline)
}

/// The cursor of the page after the one that has this number in its answer.
pub(crate) fn next_cursor(cursor: u64) -> Option<String> {
    (cursor != FIRST_CURSOR).then(|| cursor.to_string())
}

/// The pattern of all keys that begin with this prefix.
fn pattern_of(prefix: &str) -> String {
    let mut pattern = String::with_capacity(prefix.len() + 1);
    for char in prefix.chars() {
        if matches!(char, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern.push('*');
    pattern
}

/// Compare a value and set it.
pub(crate) fn swap(prefix: &str, Swap { key, known, value }: Swap<'_>) -> Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.cmd("EVAL").arg(SWAP).arg(1).arg(format!("{prefix}{key}"));
    pipeline.arg(i32::from(known.is_some())).arg(known.unwrap_or_default()).arg(value);
    // One byte more says that a value is longer.
    pipeline.arg(STORE_VALUE_BYTES_MAX + 1);
    pipeline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_no_pattern() {
        assert_eq!(pattern_of("features:acme:"), "features:acme:*");
        assert_eq!(pattern_of("a*b?[c]\\:"), "a\\*b\\?\\[c\\]\\\\:*");
        assert_eq!(pattern_of(""), "*");
    }

    #[test]
    fn a_cursor_is_a_number() {
        for cursor in [None, Some("0"), Some("17179869184")] {
            assert!(keys("f:", cursor).is_some(), "{cursor:?}");
        }
        for cursor in ["", "-1", "x", "0 MATCH *", "18446744073709551616"] {
            assert!(keys("f:", Some(cursor)).is_none(), "{cursor}");
        }
    }
}
