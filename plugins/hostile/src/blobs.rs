//! Deeds with bytes that a plugin puts on the host, in base64, too, and with JSON.

use std::hint::black_box;

use gristmill_plugin::image::{Color, Filter, Pixels};
use gristmill_plugin::{Blob, Dtype, Failure, Prepared, Request, Tensor};

use crate::{Deed, harmless, pictures};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("blob-bytes", |_| blob_bytes()),
    ("blob-base64", |_| blob_base64()),
    ("blob-slices", blob_slices),
    ("blob-huge", |_| blob_huge()),
    ("json-read", |request| json_read(request)),
    ("json-write", |_| json_write()),
    ("json-lists", |_| json_lists()),
    ("rounding", |_| rounding()),
];

/// Puts bytes on the host without end, and drops each blob before the next.
fn blob_bytes() -> ! {
    let bytes = vec![1; 1 << 20];
    loop {
        drop(black_box(Blob::from_bytes(&bytes)));
    }
}

/// Lets the host decode 24 MiB of text again and again. Only the last character is wrong.
fn blob_base64() -> ! {
    let text = "A".repeat((24 << 20) - 1) + "*";
    loop {
        let _ = black_box(Blob::from_base64(&text));
    }
}

/// Holds parts of the body without end.
fn blob_slices(request: &Request) -> Result<Prepared, Failure> {
    let body = request.body();
    let mut held = Vec::new();
    loop {
        held.push(black_box(body.slice(0, u64::MAX)));
    }
}

/// Gives more text than one call of the host passes.
fn blob_huge() -> Result<Prepared, Failure> {
    black_box(Blob::from_base64(&"A".repeat(40 << 20))?);
    harmless()
}

/// Lets the host read the numbers of the body again and again.
fn json_read(request: &Request) -> ! {
    loop {
        drop(black_box(request.json_tensor("/x", &[], Dtype::Float64)));
    }
}

/// Lets the host write a million numbers again and again.
fn json_write() -> Result<Prepared, Failure> {
    let zeros = Tensor::from_slice(&[1 << 20], &vec![0_u8; 1 << 20])?;
    loop {
        black_box(serde_json::to_vec(&zeros)?);
    }
}

/// Lets the host write lists without end, of a tensor that takes no memory.
fn json_lists() -> Result<Prepared, Failure> {
    let none = Tensor::create(Dtype::Uint8, &[u32::MAX, 0], &[])?;
    black_box(serde_json::to_vec(&none).map_err(|error| Failure::internal(error.to_string()))?);
    harmless()
}

/// Not hostile: answers with the sizes that the host rounds.
fn rounding() -> Result<Prepared, Failure> {
    let gray = |width, height| {
        let values: Vec<_> = (0..width * height).map(|at| at as u8).collect();
        Pixels::from_bytes(width, height, Color::Gray, &values)
    };
    let resized = gray(640, 480)?.resize_shorter(224, Filter::Nearest)?;
    let starts = (0..8).map(|margin| Ok(gray(9 + margin, 1)?.center_crop(9, 1)?.data()[0]));
    let starts = starts.collect::<Result<Vec<_>, Failure>>()?;
    let text = format!("{}x{} {starts:?}", resized.width(), resized.height());
    let mut prepared = harmless()?;
    prepared.state = [pictures::PIXELS, text.as_bytes()].concat();
    Ok(prepared)
}
