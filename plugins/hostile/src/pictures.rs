//! Deeds with pictures. The request's body is a picture; it has one pixel if the deed enlarges it.

use std::hint::black_box;

use gristmill_plugin::image::{self, Color, CropBox, Encoding, Filter, Pixels};
use gristmill_plugin::{Failure, Prepared, Request};

use crate::{Deed, harmless};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("bomb", bomb),
    ("pixels", |request| pixels(decoded(request)?)),
    ("pixels-lenient", |request| pixels(Pixels::decode_leniently(&request.body(), image::RGB)?)),
    ("thumbnail", thumbnail),
    ("pixels-data", pixels_data),
    ("resize-chain", |request| resize_chain(request, 12_000_000)),
    ("resize-sides", |request| resize_chain(request, 65_535)),
    ("resize-long", resize_long),
    ("resize-loop", resize_loop),
    ("crop-loop", crop_loop),
    ("draw-loop", draw_loop),
    ("encode-loop", encode_loop),
    ("crop-huge", crop_huge),
    ("draw-huge", draw_huge),
    ("encode-huge", encode_huge),
    ("tensors-huge", tensors_huge),
];

/// The beginning of a state whose rest `postprocess` answers as it is.
pub(crate) const PIXELS: &[u8] = b"pixels:";

fn decoded(request: &Request) -> Result<Pixels, Failure> {
    Ok(Pixels::decode(&request.body(), image::RGB)?)
}

fn bomb(request: &Request) -> Result<Prepared, Failure> {
    decoded(request)?;
    harmless()
}

/// Answers with the decoder's output. Bytes of another request would show in it.
fn pixels(pixels: Pixels) -> Result<Prepared, Failure> {
    let mut prepared = harmless()?;
    prepared.state = [PIXELS, &pixels.data()].concat();
    Ok(prepared)
}

/// Does the work of an honest plugin. Only the picture may be hostile.
fn thumbnail(request: &Request) -> Result<Prepared, Failure> {
    let small = decoded(request)?.resize(224, 224, Filter::Bilinear)?;
    small.to_tensor(&image::nchw(Color::Rgb))?;
    harmless()
}

/// Copies 12 MB into the guest again and again.
fn pixels_data(request: &Request) -> Result<Prepared, Failure> {
    let large = decoded(request)?.resize(2_000, 2_000, Filter::Nearest)?;
    loop {
        black_box(large.data());
    }
}

/// Resizes a row of pixels to a column. Both are small, but the picture that a resizer makes in
/// between may be a square of that side.
fn resize_chain(request: &Request, side: u32) -> Result<Prepared, Failure> {
    let long = decoded(request)?.resize(side, 1, Filter::Nearest)?;
    long.resize(1, side, Filter::Bilinear)?;
    harmless()
}

/// Makes the host compute coefficients for 50 million pixels.
fn resize_long(request: &Request) -> Result<Prepared, Failure> {
    decoded(request)?.resize(50_000_000, 1, Filter::Lanczos3)?;
    harmless()
}

/// Makes the host do small pieces of work without end.
fn resize_loop(request: &Request) -> Result<Prepared, Failure> {
    let small = decoded(request)?;
    loop {
        black_box(small.resize(1_000, 1_000, Filter::Lanczos3)?);
    }
}

/// Makes the host cut out a thousand parts without end.
fn crop_loop(request: &Request) -> Result<Prepared, Failure> {
    let small = decoded(request)?.resize(100, 100, Filter::Nearest)?;
    let boxes = [CropBox { x: 1, y: 2, width: 90, height: 80 }; 1024];
    loop {
        black_box(small.crop_many(&boxes, Some((30, 30)), Filter::Lanczos3)?);
    }
}

/// Makes the host draw the same pixels a thousand times, without end.
fn draw_loop(request: &Request) -> Result<Prepared, Failure> {
    let small = decoded(request)?.resize(200, 200, Filter::Nearest)?;
    let shapes = vec![image::rectangle([0.0, 0.0, 128.0, 128.0], [9; 3], 64); 1000];
    loop {
        black_box(small.draw(&shapes)?);
    }
}

/// Makes the host write files without end.
fn encode_loop(request: &Request) -> Result<Prepared, Failure> {
    let small = decoded(request)?.resize(700, 700, Filter::Nearest)?;
    loop {
        for format in [Encoding::Jpeg(100), Encoding::Png, Encoding::WebpLossless] {
            black_box(small.encode(format)?);
        }
    }
}

/// A picture of 12 million pixels.
fn huge(request: &Request) -> Result<Pixels, Failure> {
    Ok(decoded(request)?.resize(4_000, 3_000, Filter::Nearest)?)
}

/// Asks for a thousand copies of a huge picture at once.
fn crop_huge(request: &Request) -> Result<Prepared, Failure> {
    let whole = CropBox { x: 0, y: 0, width: 4_000, height: 3_000 };
    black_box(huge(request)?.crop_many(&[whole; 1024], None, Filter::Nearest)?);
    harmless()
}

/// Makes the host draw on a huge picture without end. Each time it is copied.
fn draw_huge(request: &Request) -> Result<Prepared, Failure> {
    let huge = huge(request)?;
    let shapes = vec![image::rectangle([0.0, 0.0, 4_000.0, 3_000.0], [9; 3], 64); 100];
    loop {
        black_box(huge.draw(&shapes)?);
    }
}

/// Makes the host write a huge picture as a file without end.
fn encode_huge(request: &Request) -> Result<Prepared, Failure> {
    let huge = huge(request)?;
    loop {
        for format in [Encoding::WebpLossless, Encoding::Png, Encoding::Jpeg(100)] {
            black_box(huge.encode(format)?);
        }
    }
}

/// Holds tensors of a huge picture, each of which has 144 MB.
fn tensors_huge(request: &Request) -> Result<Prepared, Failure> {
    let huge = huge(request)?;
    let mut held = Vec::new();
    loop {
        held.push(black_box(huge.to_tensor(&image::nchw(Color::Rgb))?));
    }
}
