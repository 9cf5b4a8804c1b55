//! Deeds that keep something for `postprocess`, or too much.

use gristmill_plugin::image::{self, Encoding, Filter, Pixels, ResizedSize};
use gristmill_plugin::{Blob, Failure, Prepared, Request, Response, keep};

use crate::{Deed, harmless};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("keep", kept),
    ("keep-many", keep_many),
    ("keep-much", keep_much),
    ("keep-a-long-name", |_| harmless()?.keep(&"n".repeat(1025), Blob::from_bytes(b"1"))),
    ("take-first", |_| keep::pixels("photo").and_then(|_| harmless())),
    ("reduced", reduced),
];

/// The state of a deed whose answer is the kept picture with a shape on it.
const KEPT: &[u8] = b"kept";

fn kept(request: &Request) -> Result<Prepared, Failure> {
    let photo = Pixels::decode(&request.body(), image::RGB)?;
    let prepared = harmless()?.state(KEPT.into());
    prepared.keep("body", request.body())?.keep("photo", photo)
}

/// The answer, if the state is of such a deed: the picture with a line around it, and how long the
/// kept body is.
pub(crate) fn answer(state: &[u8]) -> Option<Result<Response, Failure>> {
    (state == KEPT).then(|| {
        let (photo, body) = (keep::pixels("photo")?, keep::blob("body")?);
        let bounds = [0.0, 0.0, photo.width() as f32, photo.height() as f32];
        let drawn = photo.draw(&[image::rectangle(bounds, [9, 8, 7], 1)])?;
        let file = image::bytes(&drawn.encode(Encoding::Png)?);
        let again = keep::pixels("photo").is_ok();
        let content_type = format!("image/png; body={}; again={again}", body.len());
        Ok(Response::new(&content_type, file))
    })
}

/// Keeps blobs without end.
fn keep_many(_: &Request) -> Result<Prepared, Failure> {
    let mut prepared = harmless()?;
    for count in 0.. {
        prepared = prepared.keep(&format!("{count}"), Blob::from_bytes(b"1"))?;
    }
    Ok(prepared)
}

/// Keeps a small part of each of many large blobs.
fn keep_much(_: &Request) -> Result<Prepared, Failure> {
    let mut prepared = harmless()?;
    let large = vec![1; 8 << 20];
    for count in 0..256 {
        let part = Blob::from_bytes(&large).slice(0, 1);
        prepared = prepared.keep(&format!("{count}"), part)?;
    }
    Ok(prepared)
}

/// Does the work of an honest plugin that decodes at a smaller size. Only the picture may be
/// hostile.
fn reduced(request: &Request) -> Result<Prepared, Failure> {
    let size = ResizedSize::Shorter(256);
    let small = Pixels::decode_resized(&request.body(), image::RGB, size, Filter::Bilinear)?;
    small.center_crop(224, 224)?.to_tensor(&image::imagenet())?;
    harmless()
}
