//! Deeds that end a call in an unusual way, or do not end it.

use std::hint::black_box;

use gristmill_plugin::{Failure, Prepared, Request};

use crate::{Deed, harmless};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("trap", |_| trap()),
    ("panic", |_| panic!("as told")),
    ("loop", |_| endless()),
    ("spin", spin),
    ("recurse", |_| Err(Failure::internal(format!("{}", recurse(0))))),
    ("long-error", |_| Err(Failure::invalid_input("e".repeat(1 << 20)))),
    ("random", |_| Err(Failure::unprocessable(random()?.to_string()))),
    ("internal-error", |_| Err(Failure::internal("a secret of the plugin"))),
];

/// A random number, of the crate that others get theirs from.
fn random() -> Result<u64, Failure> {
    getrandom::u64().map_err(|error| Failure::internal(error.to_string()))
}

pub(crate) fn trap() -> ! {
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_arch = "wasm32"))]
    panic!("a trap, on WebAssembly");
}

pub(crate) fn endless() -> ! {
    loop {
        black_box(0);
    }
}

/// Spins for `?rounds=` rounds, so that a caller can make calls that stay just within the budget.
fn spin(request: &Request) -> Result<Prepared, Failure> {
    let rounds = request.query_value("rounds").and_then(|rounds| rounds.parse().ok());
    let rounds: u64 = rounds.ok_or_else(|| Failure::invalid_input("rounds is not a number"))?;
    (0..rounds).for_each(|round| {
        black_box(round);
    });
    harmless()
}

fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if depth == u64::MAX { 0 } else { recurse(depth + 1) + frame[63] }
}
