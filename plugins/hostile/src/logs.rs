//! Deeds that log too much, or odd texts.

use gristmill_plugin::log::{self, Level};
use gristmill_plugin::{Failure, Prepared, Request};

use crate::{Deed, harmless};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("flood-log", |_| flood(100_000, &"x".repeat(1000), &[])),
    ("log-empty", |_| flood(4_000_000, "", &[])),
    ("log-short", |_| flood(4_000_000, "x", &[])),
    ("log-control", |_| flood(100_000, &"\u{1b}".repeat(1000), &[])),
    ("log-line", |_| {
        let fields = [("texts", "1"), ("tenant", "a \"forged\" one")];
        log::write(Level::Warn, "hashed\n\"it\"", &fields);
        harmless()
    }),
    ("log-fields", |_| flood(1_000, "", &vec![("f", "v"); FIELDS])),
    ("log-empty-fields", |_| flood(1_000, "", &vec![("", ""); FIELDS])),
    ("log-and-panic", log_and_panic),
];

const FIELDS: usize = 300_000;

fn flood(lines: u32, message: &str, fields: &[(&str, &str)]) -> Result<Prepared, Failure> {
    (0..lines).for_each(|_| log::write(Level::Info, message, fields));
    harmless()
}

/// Logs a hundred lines of `?bytes=` bytes first.
fn log_and_panic(request: &Request) -> Result<Prepared, Failure> {
    let bytes = request.query_value("bytes").and_then(|bytes| bytes.parse().ok());
    let bytes = bytes.ok_or_else(|| Failure::invalid_input("bytes is not a number"))?;
    flood(100, &"x".repeat(bytes), &[])?;
    panic!("after a hundred lines")
}
