//! Deeds with the files that a call may open.

use std::hint::black_box;

use gristmill_plugin::{Failure, Prepared, Request, assets};

use crate::{Deed, harmless, pictures};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("asset", opened),
    ("asset-for-ever", |_| for_ever()),
    ("asset-hold", hold),
    ("asset-names", |_| names()),
];

/// Not hostile: answers with the file of the query's `name`, or with why there is none.
fn opened(request: &Request) -> Result<Prepared, Failure> {
    let name = request.query_value("name").unwrap_or_default();
    let bytes = match assets::read(&name) {
        Ok(bytes) => bytes,
        Err(error) => format!("not-found: {}", error.text()).into_bytes(),
    };
    let mut prepared = harmless()?;
    prepared.state = [pictures::PIXELS, &bytes].concat();
    Ok(prepared)
}

/// Opens a file that is not there, without end.
fn for_ever() -> ! {
    loop {
        let _ = black_box(assets::open("../../etc/passwd"));
    }
}

/// Opens a file without end, and keeps each blob.
fn hold(request: &Request) -> Result<Prepared, Failure> {
    let name = request.query_value("name").unwrap_or_default();
    let mut held = Vec::new();
    loop {
        held.push(black_box(assets::open(&name)?));
    }
}

/// Asks for files whose names are long, lead elsewhere, or are no text for people.
fn names() -> Result<Prepared, Failure> {
    for name in ["", "..", "/", "/etc/passwd", "a/../../b", "\0", &"n".repeat(1 << 20)] {
        match assets::open(name) {
            Ok(_) => return Err(Failure::internal("the host has such a file")),
            Err(error) if error.text().len() > 4096 => {
                return Err(Failure::internal("the host repeats a long name"));
            }
            Err(_) => {}
        }
    }
    harmless()
}
