//! Deeds that show whether an instance serves several calls, and deeds that make it unfit for more.
//!
//! The answer has the numbers of both calls among those of their instances: "1 1" means that each
//! had a fresh one.

use std::sync::atomic::{AtomicU32, Ordering};

use gristmill_plugin::{Failure, Outputs, Prepared, Response, Tensor};

use crate::{Deed, blank};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("count", |_| counted()),
    ("count-and-refuse", |_| {
        next();
        Err(Failure::unprocessable("as told"))
    }),
    ("count-and-trap", |_| {
        next();
        panic!("as told")
    }),
    ("count-and-grow", |_| {
        std::hint::black_box(vec![1_u8; 20 << 20].leak());
        counted()
    }),
    ("count-and-keep", |_| {
        // The handle stays in the instance.
        std::mem::forget(Tensor::from_slice(&[1 << 20], &vec![0_u8; 1 << 20])?);
        counted()
    }),
    ("count-and-keep-outputs", |_| counted_after(KEEPS)),
];

/// The beginning of such a deed's state.
const STATE: &[u8] = b"count ";

/// Before it, if `postprocess` is to keep the model's outputs.
const KEEPS: &[u8] = b"keep ";

fn next() -> u32 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    CALLS.fetch_add(1, Ordering::Relaxed) + 1
}

fn counted() -> Result<Prepared, Failure> {
    counted_after(b"")
}

fn counted_after(prefix: &[u8]) -> Result<Prepared, Failure> {
    let state = [prefix, STATE, next().to_string().as_bytes()].concat();
    Ok(Prepared::new().input("input", blank()?).state(state))
}

/// The answer, if the state is of such a deed.
pub(crate) fn answer(state: &[u8], outputs: Outputs) -> Option<Response> {
    let state = match state.strip_prefix(KEEPS) {
        Some(state) => {
            // The handles stay in the instance.
            std::mem::forget(outputs);
            state
        }
        None => state,
    };
    let first = state.strip_prefix(STATE)?;
    let answer = format!("{} {}", String::from_utf8_lossy(first), next());
    Some(Response::new("text/plain", answer))
}
