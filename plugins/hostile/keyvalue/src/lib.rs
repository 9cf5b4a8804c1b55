//! A handler that uses `wasi:keyvalue`, as stock wit-bindgen makes it, in the way that its request
//! names: a list of steps, each a list of texts. Most of them are not hostile. It tells what came
//! of each step.

mod draft;

use std::fmt::Debug;

use gristmill_plugin::{Context, HandleError, Handler, Request, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use self::bindings::wasi::keyvalue::atomics::{self, Cas, CasError};
use self::bindings::wasi::keyvalue::batch;
use self::bindings::wasi::keyvalue::store::{self, Bucket, Error};

mod bindings {
    #![allow(clippy::all)]

    wit_bindgen::generate!({
        path: "../../../host/sandbox/wit/wasi-keyvalue.wit",
        world: "wasi:keyvalue/imports",
        generate_all,
    });
}

/// What the handler shall do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deed {
    bucket: String,
    /// Whether it uses the earlier version of the interfaces.
    #[serde(default)]
    draft: bool,
    steps: Vec<Vec<String>>,
}

/// What came of a step, or the error.
type Outcome = Result<Value, String>;

struct KeyValue;

impl Handler for KeyValue {
    fn handle(_context: &Context, request: &Request) -> Result<Response, HandleError> {
        let deed: Deed = request.json()?;
        let outcomes = match deed.draft {
            true => draft::outcomes(&deed.bucket, &deed.steps),
            false => outcomes(&deed.bucket, &deed.steps),
        };
        Ok(Response::json(&outcomes)?)
    }
}

/// What came of each step; the error alone if the bucket cannot be opened.
fn outcomes(bucket: &str, steps: &[Vec<String>]) -> Vec<Outcome> {
    match store::open(bucket) {
        Ok(bucket) => steps.iter().map(|step| outcome(&bucket, step).map_err(text_of)).collect(),
        Err(error) => vec![Err(text_of(error))],
    }
}

fn text_of(error: Error) -> String {
    match error {
        Error::NoSuchStore => "no-such-store".to_owned(),
        Error::AccessDenied => "access-denied".to_owned(),
        Error::Other(text) => text,
    }
}

fn outcome(bucket: &Bucket, step: &[String]) -> Result<Value, Error> {
    let words: Vec<&str> = step.iter().map(String::as_str).collect();
    Ok(match words[..] {
        ["get", key] => json!(bucket.get(key)?.map(shown)),
        ["set", key, value] => json!(bucket.set(key, value.as_bytes())?),
        ["set-long", key, bytes] => json!(bucket.set(key, &vec![b'x'; number(bytes)])?),
        ["delete", key] => json!(bucket.delete(key)?),
        ["exists", key] => json!(bucket.exists(key)?),
        ["list"] => json!(all_keys(bucket)?),
        ["list-from", cursor] => json!(bucket.list_keys(Some(cursor))?.keys),
        ["increment", key, delta] => json!(atomics::increment(bucket, key, number(delta))?),
        ["get-many", ..] => {
            let values = batch::get_many(bucket, &step[1..])?;
            json!(
                values.into_iter().map(|of| of.map(|(key, v)| (key, shown(v)))).collect::<Vec<_>>()
            )
        }
        // The same key so often.
        ["get-often", key, times] => {
            let keys = vec![key.to_owned(); number(times)];
            json!(batch::get_many(bucket, &keys)?.len())
        }
        ["set-many", ..] => {
            let pair = |pair: &[String]| (pair[0].clone(), pair[1].clone().into_bytes());
            json!(batch::set_many(bucket, &step[1..].chunks(2).map(pair).collect::<Vec<_>>())?)
        }
        ["delete-many", ..] => json!(batch::delete_many(bucket, &step[1..])?),
        // Keys `k0`, `k1` and so on.
        ["set-numbered", times] => {
            let pair = |at| (format!("k{at}"), b"v".to_vec());
            json!(batch::set_many(
                bucket,
                &(0..number::<u32>(times)).map(pair).collect::<Vec<_>>()
            )?)
        }
        ["delete-numbered", times] => {
            let keys: Vec<_> = (0..number::<u32>(times)).map(|at| format!("k{at}")).collect();
            json!(batch::delete_many(bucket, &keys)?)
        }
        ["swap", key, value] => {
            let cas = Cas::new(bucket, key)?;
            let before = cas.current()?.map(shown);
            json!([before, swapped(atomics::swap(cas, value.as_bytes()))])
        }
        // Somebody else sets the value between both.
        ["race", key, other, value] => {
            let cas = Cas::new(bucket, key)?;
            match other {
                "" => bucket.delete(key)?,
                other => bucket.set(key, other.as_bytes())?,
            }
            match atomics::swap(cas, value.as_bytes()) {
                Err(CasError::CasFailed(cas)) => {
                    let now = cas.current()?.map(shown);
                    json!([now, swapped(atomics::swap(cas, value.as_bytes()))])
                }
                outcome => json!(swapped(outcome)),
            }
        }
        // Until the host ends it.
        ["hold", key] => {
            let mut held = Vec::new();
            loop {
                held.push(Cas::new(bucket, key)?);
            }
        }
        ref unknown => return Err(Error::Other(format!("there is no step {unknown:?}"))),
    })
}

fn swapped(outcome: Result<(), CasError>) -> String {
    match outcome {
        Ok(()) => "swapped".to_owned(),
        Err(CasError::CasFailed(_)) => "another value is there".to_owned(),
        Err(CasError::StoreError(error)) => text_of(error),
    }
}

/// All keys in order, and the number of pages.
fn all_keys(bucket: &Bucket) -> Result<(Vec<String>, usize), Error> {
    let (mut keys, mut pages, mut cursor) = (Vec::new(), 0, None);
    loop {
        let page = bucket.list_keys(cursor.as_deref())?;
        keys.extend(page.keys);
        pages += 1;
        if page.cursor.is_none() {
            keys.sort_unstable();
            return Ok((keys, pages));
        }
        cursor = page.cursor;
    }
}

fn number<T: std::str::FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

/// A short value, or the length of a long one.
fn shown(value: Vec<u8>) -> String {
    match value.len() {
        ..100 => String::from_utf8_lossy(&value).into_owned(),
        bytes => format!("{bytes} bytes"),
    }
}

gristmill_plugin::export_handler!(KeyValue);
