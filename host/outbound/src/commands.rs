//! The commands of Redis for what plugins ask. Their answers are read in `answers`.

use gristmill_sandbox::{STORE_PAGE_KEYS, STORE_VALUE_BYTES_MAX, Swap, WantedValues};
use redis::{Arg, Cmd, Pipeline};

use crate::answers::ANSWERS_APART;
use crate::cluster::{Step, slot_of};

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

/// The values of keys, each of a moment of its own: no transaction has keys of several slots.
pub(crate) fn get_apart(prefix: &str, wanted: WantedValues<'_>) -> Pipeline {
    let WantedValues { keys, most_bytes, .. } = wanted;
    let mut pipeline = Pipeline::with_capacity(ANSWERS_APART * keys.len());
    for key in keys {
        let key = format!("{prefix}{key}");
        pipeline.cmd("MULTI").cmd("EXISTS").arg(key.as_str());
        pipeline.cmd("GETRANGE").arg(key.as_str()).arg(0).arg(most_bytes).cmd("EXEC");
    }
    pipeline
}

/// The commands by their keys, of which each has `each` of them, at least one.
pub(crate) fn by_key(pipeline: &Pipeline, each: usize) -> Vec<Step> {
    let slot = |command: &Cmd| {
        let mut arguments = command.args_iter();
        // Before the key of a script are its text and the number of its keys.
        let before = match arguments.next() {
            Some(Arg::Simple(b"EVAL")) => 2,
            _ => 0,
        };
        match arguments.nth(before) {
            Some(Arg::Simple(key)) => Some(slot_of(key)),
            _ => None,
        }
    };
    let mut commands = pipeline.cmd_iter().cloned();
    let step = |_| {
        let commands: Vec<_> = commands.by_ref().take(each).collect();
        Step { slot: commands.iter().find_map(slot).unwrap_or_default(), commands }
    };
    (0..pipeline.len() / each).map(step).collect()
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

/// Forget keys, each by a command of its own: no command has keys of several slots.
pub(crate) fn remove_apart(prefix: &str, keys: &[&str]) -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(keys.len());
    for key in keys {
        pipeline.cmd("DEL").arg(format!("{prefix}{key}"));
    }
    pipeline
}

/// A page of the keys that begin with a prefix, from the cursor `from` on: 0 at the beginning. One
/// step looks at so many keys of the whole database, of whomever they are.
pub(crate) fn keys(prefix: &str, from: u64) -> Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.cmd("SCAN").arg(from).arg("MATCH").arg(pattern_of(prefix));
    pipeline.arg("COUNT").arg(STORE_PAGE_KEYS);
    pipeline
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
pub(crate) fn swap(prefix: &str, Swap { key, expected, value }: Swap<'_>) -> Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.cmd("EVAL").arg(SWAP).arg(1).arg(format!("{prefix}{key}"));
    pipeline.arg(i32::from(expected.is_some())).arg(expected.unwrap_or_default()).arg(value);
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
    fn commands_go_to_the_slots_of_their_keys() {
        let (keys, most_bytes) = (["a", "{foo}x"], 8);
        let wanted = WantedValues { keys: &keys, most_bytes, none_if_empty: false };
        let swap_value = Swap { key: "a", expected: Some(b"foo"), value: b"123456789" };
        let (a, foo) = (slot_of(b"p:a"), slot_of(b"foo"));
        for (pipeline, each, slots) in [
            (get_apart("p:", wanted), ANSWERS_APART, vec![a, foo]),
            (set("p:", &[("a", b"foo"), ("{foo}", b"a")], Some(7)), 1, vec![a, foo]),
            (remove_apart("p:", &keys), 1, vec![a, foo]),
            (swap("p:", swap_value), 1, vec![a]),
        ] {
            let steps = by_key(&pipeline, each);
            assert!(steps.iter().all(|step| step.commands.len() == each));
            assert_eq!(steps.iter().map(|step| step.slot).collect::<Vec<_>>(), slots);
        }
    }
}
