//! The commands of Redis for what plugins ask. Their answers are read in `answers`.

use gristmill_sandbox::WantedValues;
use redis::Pipeline;

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

/// Forget a key.
pub(crate) fn remove(prefix: &str, key: &str) -> Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.cmd("DEL").arg(format!("{prefix}{key}"));
    pipeline
}
