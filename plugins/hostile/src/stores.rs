//! Deeds with stores of values by key. One of them is not hostile: it does what the query names and
//! answers with what it got.

use std::hint::black_box;
use std::time::Duration;

use gristmill_plugin::store::{self, StoreError};
use gristmill_plugin::{Blob, Failure, Prepared, Request};

use crate::{Deed, harmless, pictures};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("store", asked),
    ("store-for-ever", |_| for_ever()),
    ("store-keys", |_| many_keys()),
    ("store-hold", |request| hold(request)),
    ("store-read-loop", read_loop),
    ("store-write-loop", write_loop),
];

/// Not hostile: what the query names as `op`, with `bucket`, `keys` (comma between), `value`,
/// `width`, `delta` and `ttl`. Answers with the outcome as text.
fn asked(request: &Request) -> Result<Prepared, Failure> {
    let text = match outcome(request)? {
        Ok(text) => text,
        Err(error) => {
            let kind = match error {
                StoreError::NotGranted(_) => "not-granted",
                StoreError::InvalidArgument(_) => "invalid-argument",
                StoreError::Unavailable(_) => "unavailable",
                StoreError::ReadOnly(_) => "read-only",
            };
            format!("{kind}: {}", error.text())
        }
    };
    let mut prepared = harmless()?;
    prepared.state = [pictures::PIXELS, text.as_bytes()].concat();
    Ok(prepared)
}

fn outcome(request: &Request) -> Result<Result<String, StoreError>, Failure> {
    let value = |name: &str| request.query_value(name).unwrap_or_default();
    let (bucket, keys) = (value("bucket"), value("keys"));
    let keys: Vec<_> = keys.split(',').collect();
    Ok(match value("op").as_str() {
        "get" => store::get(&bucket, keys[0]).map(|found| text_of(found.as_ref())),
        "get-many" => store::get_many(&bucket, &keys).map(|found| {
            found.iter().map(|blob| text_of(blob.as_ref())).collect::<Vec<_>>().join(",")
        }),
        "gather" => match store::gather(&bucket, &keys, value("width").parse()?, -1.0) {
            Ok(rows) => Ok(format!("{:?} {:?}", rows.dims(), rows.view::<f32>()?.as_slice())),
            Err(error) => Err(error),
        },
        "set" => {
            let ttl = value("ttl").parse().ok().map(Duration::from_millis);
            store::set(&bucket, keys[0], value("value"), ttl).map(|()| "set".to_owned())
        }
        "increment" => {
            store::increment(&bucket, keys[0], value("delta").parse()?).map(|sum| sum.to_string())
        }
        other => return Err(Failure::invalid_input(format!("there is no op {other:?}"))),
    })
}

fn text_of(blob: Option<&Blob>) -> String {
    blob.map_or("none".to_owned(), |blob| {
        String::from_utf8_lossy(&blob.read(0, u64::MAX)).into_owned()
    })
}

/// Asks for a store that it may not use, without end.
fn for_ever() -> ! {
    loop {
        let _ = black_box(store::get("secrets", "k"));
    }
}

/// Asks for more keys than a call may have, and for longer ones.
fn many_keys() -> Result<Prepared, Failure> {
    let keys = vec!["k"; 5000];
    let long = "k".repeat(2000);
    for refused in [store::get_many("features", &keys), store::get_many("features", &[long])] {
        if !matches!(refused, Err(StoreError::InvalidArgument(_))) {
            return Err(Failure::internal("the host took the keys"));
        }
    }
    harmless()
}

/// Holds the value of a key without end. It counts once in each call.
fn hold(request: &Request) -> Result<Prepared, Failure> {
    let bucket = request.query_value("bucket").unwrap_or_default();
    let keys = ["held"; 2];
    let mut held = Vec::new();
    loop {
        held.push(black_box(store::get_many(&bucket, &keys)?));
    }
}

/// Asks the query's `bucket` for many values without end, whatever it answers.
fn read_loop(request: &Request) -> Result<Prepared, Failure> {
    let bucket = request.query_value("bucket").unwrap_or_default();
    let keys: Vec<_> = (0..1_000).map(|key| key.to_string()).collect();
    loop {
        let _ = black_box(store::get_many(&bucket, &keys));
    }
}

/// Sets large values in the query's `bucket` without end, whatever it answers.
fn write_loop(request: &Request) -> Result<Prepared, Failure> {
    let bucket = request.query_value("bucket").unwrap_or_default();
    let value = vec![7; 1 << 20];
    for key in 0_u64.. {
        let _ = black_box(store::set(&bucket, &key.to_string(), &value, None));
    }
    harmless()
}
