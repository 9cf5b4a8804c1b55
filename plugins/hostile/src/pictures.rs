//! Pictures: the request's body is one, of 1x1 where the deed makes it large.

use std::hint::black_box;

use gristmill_plugin::image::{self, Color, Filter, Pixels};
use gristmill_plugin::{Failure, Prepared, Request};

use crate::{Deed, harmless};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("bomb", bomb),
    ("pixels", |request| pixels(decoded(request)?)),
    ("pixels-lenient", |request| pixels(Pixels::decode_leniently(&request.body, image::RGB)?)),
    ("thumbnail", thumbnail),
    ("pixels-data", pixels_data),
    ("resize-chain", |request| resize_chain(request, 12_000_000)),
    ("resize-sides", |request| resize_chain(request, 65_535)),
    ("resize-long", resize_long),
    ("resize-loop", resize_loop),
];

/// What the state of a picture that is to be answered begins with.
pub(crate) const PIXELS: &[u8] = b"pixels:";

fn decoded(request: &Request) -> Result<Pixels, Failure> {
    Ok(Pixels::decode(&request.body, image::RGB)?)
}

fn bomb(request: &Request) -> Result<Prepared, Failure> {
    decoded(request)?;
    harmless()
}

/// What the decoder gave: bytes of another would be in it.
fn pixels(pixels: Pixels) -> Result<Prepared, Failure> {
    let mut prepared = harmless()?;
    prepared.state = [PIXELS, &pixels.data()].concat();
    Ok(prepared)
}

/// What an honest plugin does: hostile is only the picture.
fn thumbnail(request: &Request) -> Result<Prepared, Failure> {
    let small = decoded(request)?.resize(224, 224, Filter::Bilinear)?;
    small.to_tensor(&image::nchw(Color::Rgb))?;
    harmless()
}

/// 12 MB copied into the guest, over and over.
fn pixels_data(request: &Request) -> Result<Prepared, Failure> {
    let large = decoded(request)?.resize(2_000, 2_000, Filter::Nearest)?;
    loop {
        black_box(large.data());
    }
}

/// Both pictures are small enough; what a resizer may hold between the two has as many pixels as
/// the square of their side.
fn resize_chain(request: &Request, side: u32) -> Result<Prepared, Failure> {
    let long = decoded(request)?.resize(side, 1, Filter::Nearest)?;
    long.resize(1, side, Filter::Bilinear)?;
    harmless()
}

/// A table of coefficients for each of 50 million pixels.
fn resize_long(request: &Request) -> Result<Prepared, Failure> {
    decoded(request)?.resize(50_000_000, 1, Filter::Lanczos3)?;
    harmless()
}

/// Work of the host without end, none of it large.
fn resize_loop(request: &Request) -> Result<Prepared, Failure> {
    let small = decoded(request)?;
    loop {
        black_box(small.resize(1_000, 1_000, Filter::Lanczos3)?);
    }
}
