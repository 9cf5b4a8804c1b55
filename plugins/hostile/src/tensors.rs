//! Tensors: many, large, of odd shapes, and what the host computes over them.

use std::hint::black_box;

use gristmill_plugin::{Dtype, Failure, Prepared, Request, Tensor};

use crate::{BLANK, Deed, harmless};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("eat-handles", |_| eat_handles()),
    ("eat-host-memory", |_| make_and_drop(1 << 20)),
    ("large-tensors", |_| make_and_drop(TENSOR_BYTES)),
    ("hold-tensors", |_| hold_tensors()),
    ("huge-tensor", |_| huge_tensor()),
    ("huge-shape-text", |_| huge_shape_text()),
    ("many-dims", |_| many_dims(1)),
    ("many-dims-held", |_| many_dims(200)),
    ("empty-strings", |_| empty_strings()),
    ("top-k", |_| top_k()),
    ("argmax", |_| argmax()),
    ("softmax", |_| softmax()),
    ("tensor-data", |_| tensor_data()),
    ("read-body", read_body),
];

/// The largest tensor that a plugin may make by default.
const TENSOR_BYTES: usize = 32 << 20;
/// As many floats.
const FLOATS: usize = TENSOR_BYTES / 4;
/// As many dimensions as nearly fit into what one call may bring to the host.
const DIMS: usize = 8_000_000;

fn eat_handles() -> ! {
    let mut held = Vec::new();
    loop {
        held.push(black_box(Tensor::from_slice(&[1], &[0_u8])));
    }
}

/// Makes tensors and lets go of each at once: never many at a time, but without end.
fn make_and_drop(bytes: usize) -> ! {
    let chunk = vec![0_u8; bytes];
    loop {
        drop(black_box(Tensor::from_slice(&[chunk.len()], &chunk)));
    }
}

/// Holds nearly all that a call may have of the host's memory, for as long as the call lasts.
fn hold_tensors() -> Result<Prepared, Failure> {
    let chunk = vec![1_u8; TENSOR_BYTES];
    let tensor = |_| Tensor::from_slice(&[chunk.len()], &chunk);
    let held: Vec<_> = (0..7).map(tensor).collect::<Result<_, _>>()?;
    loop {
        black_box(&held);
    }
}

/// Says in the shape that it is huge, so that the product overflows.
fn huge_tensor() -> Result<Prepared, Failure> {
    let most = u32::MAX as usize;
    let tensor = Tensor::from_slice(&[most, most, most], &BLANK)?;
    Ok(Prepared::new().input("input", tensor))
}

/// A shape whose product overflows and whose dimensions fill 90 MB of the message that says so.
fn huge_shape_text() -> Result<Prepared, Failure> {
    loop {
        let _ = black_box(Tensor::create(Dtype::Uint8, &vec![u32::MAX; DIMS], &[0]));
    }
}

/// Tensors of one byte and of so many dimensions of 1.
fn many_dims(count: usize) -> Result<Prepared, Failure> {
    let shape = vec![1; DIMS];
    let tensor = |_| Tensor::create(Dtype::Uint8, &shape, &[0]);
    let held: Vec<_> = (0..count).map(tensor).collect::<Result<_, _>>()?;
    black_box(held);
    harmless()
}

/// 8 M strings, each of which the host looks at.
fn empty_strings() -> ! {
    let lengths = vec![0_u8; TENSOR_BYTES];
    loop {
        let _ = black_box(Tensor::create(Dtype::String, &[FLOATS as u32], &lengths));
    }
}

/// Not in order, so that sorting has something to do.
fn floats(shape: &[usize]) -> Result<Tensor, Failure> {
    let value = |index: u32| (index.wrapping_mul(2_654_435_761) >> 8) as f32;
    let values: Vec<_> = (0..shape.iter().product::<usize>() as u32).map(value).collect();
    Ok(Tensor::from_slice(shape, &values)?)
}

fn top_k() -> Result<Prepared, Failure> {
    let tensor = floats(&[1, FLOATS])?;
    loop {
        black_box(tensor.top_k(0, 10));
    }
}

/// An answer of 32 MB, over and over.
fn argmax() -> Result<Prepared, Failure> {
    let tensor = floats(&[FLOATS / 2, 1])?;
    loop {
        black_box(tensor.argmax());
    }
}

fn softmax() -> Result<Prepared, Failure> {
    let tensor = floats(&[1, FLOATS])?;
    loop {
        black_box(tensor.softmax());
    }
}

/// 16 MB copied into the guest, over and over.
fn tensor_data() -> Result<Prepared, Failure> {
    let tensor = floats(&[1, FLOATS / 2])?;
    loop {
        black_box(tensor.data());
    }
}

/// The request's body copied into the guest, over and over.
fn read_body(request: &Request) -> Result<Prepared, Failure> {
    loop {
        black_box(request.body.bytes());
    }
}
