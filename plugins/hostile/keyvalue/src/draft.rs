//! The steps with the earlier version of the interfaces, where pages and numbers are `u64`.

use serde_json::{Value, json};

use self::bindings::wasi::keyvalue::store::{self, Bucket, Error};
use self::bindings::wasi::keyvalue::{atomics, batch};
use crate::{Outcome, number, shown};

mod bindings {
    #![allow(clippy::all)]

    wit_bindgen::generate!({ path: "wit/draft.wit", world: "imports", generate_all });
}

pub(crate) fn outcomes(bucket: &str, steps: &[Vec<String>]) -> Vec<Outcome> {
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
        ["delete", key] => json!(bucket.delete(key)?),
        ["exists", key] => json!(bucket.exists(key)?),
        ["list"] => json!(all_keys(bucket)?),
        ["list-from", cursor] => json!(bucket.list_keys(Some(number(cursor)))?.keys),
        ["get-many", ..] => {
            let values = batch::get_many(bucket, &step[1..])?;
            json!(
                values.into_iter().map(|of| of.map(|(_, value)| shown(value))).collect::<Vec<_>>()
            )
        }
        ["set-many", key, value] => {
            json!(batch::set_many(bucket, &[(key.to_owned(), value.as_bytes().to_vec())])?)
        }
        ["delete-many", ..] => json!(batch::delete_many(bucket, &step[1..])?),
        ["increment", key, delta] => json!(atomics::increment(bucket, key, number(delta))?),
        ref unknown => return Err(Error::Other(format!("there is no step {unknown:?}"))),
    })
}

/// All keys in order, and the number of pages.
fn all_keys(bucket: &Bucket) -> Result<(Vec<String>, usize), Error> {
    let (mut keys, mut pages, mut cursor) = (Vec::new(), 0, None);
    loop {
        let page = bucket.list_keys(cursor)?;
        keys.extend(page.keys);
        pages += 1;
        if page.cursor.is_none() {
            keys.sort_unstable();
            return Ok((keys, pages));
        }
        cursor = page.cursor;
    }
}
