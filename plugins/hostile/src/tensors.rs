//! Deeds with tensors: many, large or oddly shaped ones, and the host's computations over them.

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
/// The number of floats in such a tensor.
const FLOATS: usize = TENSOR_BYTES / 4;
/// Nearly as many dimensions as one call of a host function may pass.
const DIMS: usize = 8_000_000;

fn eat_handles() -> ! {
    let mut held = Vec::new();
    loop {
        held.push(black_box(Tensor::from_slice(&[1], &[0_u8])));
    }
}

/// Makes tensors without end, and drops each one before the next.
fn make_and_drop(bytes: usize) -> ! {
    let chunk = vec![0_u8; bytes];
    loop {
        drop(black_box(Tensor::from_slice(&[chunk.len()], &chunk)));
    }
}

/// Holds nearly all of the host's memory that a call may have, until the call is ended.
fn hold_tensors() -> Result<Prepared, Failure> {
    let chunk = vec![1_u8; TENSOR_BYTES];
    let tensor = |_| Tensor::from_slice(&[chunk.len()], &chunk);
    let held: Vec<_> = (0..7).map(tensor).collect::<Result<_, _>>()?;
    loop {
        black_box(&held);
    }
}

/// Gives a shape whose product overflows.
fn huge_tensor() -> Result<Prepared, Failure> {
    let most = u32::MAX as usize;
    let tensor = Tensor::from_slice(&[most, most, most], &BLANK)?;
    Ok(Prepared::new().input("input", tensor))
}

/// Gives a shape of so many dimensions that the host's error message would have 90 MB.
fn huge_shape_text() -> Result<Prepared, Failure> {
    loop {
        let _ = black_box(Tensor::create(Dtype::Uint8, &vec![u32::MAX; DIMS], &[0]));
    }
}

/// Makes `count` tensors of one byte and of [`DIMS`] dimensions of 1.
fn many_dims(count: usize) -> Result<Prepared, Failure> {
    let shape = vec![1; DIMS];
    let tensor = |_| Tensor::create(Dtype::Uint8, &shape, &[0]);
    let held: Vec<_> = (0..count).map(tensor).collect::<Result<_, _>>()?;
    black_box(held);
    harmless()
}

/// Makes tensors of 8 M strings. The host checks each string.
fn empty_strings() -> ! {
    let lengths = vec![0_u8; TENSOR_BYTES];
    loop {
        let _ = black_box(Tensor::create(Dtype::String, &[FLOATS as u32], &lengths));
    }
}

/// A tensor of floats that are not sorted.
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

/// Asks for an answer of 32 MB again and again.
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

/// Copies 16 MB into the guest again and again.
fn tensor_data() -> Result<Prepared, Failure> {
    let tensor = floats(&[1, FLOATS / 2])?;
    loop {
        black_box(tensor.data());
    }
}

/// Copies the request's body into the guest again and again.
fn read_body(request: &Request) -> Result<Prepared, Failure> {
    loop {
        black_box(request.body_bytes());
    }
}
