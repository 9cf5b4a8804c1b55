//! Deeds with arrays, which the host computes.

use std::hint::black_box;

use gristmill_plugin::numpy::Array;
use gristmill_plugin::{Dtype, Failure, Prepared, Tensor};

use crate::{Deed, harmless};

pub(crate) const DEEDS: &[(&str, Deed)] = &[
    ("arrays-products", |_| products()),
    ("arrays-sort", |_| sort()),
    ("arrays-boxes", |_| boxes()),
    ("arrays-steps", |_| steps()),
    ("arrays-huge", |_| huge()),
    ("arrays-hold", |_| hold()),
];

/// Multiplies large matrices without end.
fn products() -> Result<Prepared, Failure> {
    let ones = ones([2_000, 2_000])?;
    loop {
        black_box(Array::from(&ones).matmul(&ones).into_tensor()?);
    }
}

/// Sorts as many elements as one array may have without end.
fn sort() -> Result<Prepared, Failure> {
    let numbers = Array::arange(2_000_000, 0, -1).into_tensor()?;
    loop {
        black_box(Array::from(&numbers).argsort(0, false).into_tensor()?);
    }
}

/// Compares 100,000 boxes, of which all stay, with one another.
fn boxes() -> Result<Prepared, Failure> {
    const BOXES: usize = 100_000;
    let corners: Vec<f32> = (0..BOXES).flat_map(|at| [0.0, 0.9].map(|to| at as f32 + to)).collect();
    let boxes: Vec<f32> = corners.chunks(2).flat_map(|of| [of[0], 0.0, of[1], 1.0]).collect();
    let boxes = Array::from_slice(&[BOXES, 4], &boxes)?;
    let scores = Array::zeros([BOXES], Dtype::Float32);
    loop {
        black_box(boxes.nms(&scores, 0.5, None, None).into_tensor()?);
    }
}

/// Makes the host do tiny steps without end, in programs that are as long as the SDK makes them.
fn steps() -> Result<Prepared, Failure> {
    let one = ones([1, 1])?;
    loop {
        let mut chain = Array::from(&one);
        for _ in 0..10_000 {
            chain = chain + 1;
        }
        black_box(chain.into_tensor()?);
    }
}

/// Asks for 16 GB, made of nothing.
fn huge() -> Result<Prepared, Failure> {
    let (row, column) = (ones([1, 65_536])?, ones([65_536, 1])?);
    black_box((Array::from(&row) + &column).into_tensor()?);
    harmless()
}

/// Holds arrays without end.
fn hold() -> Result<Prepared, Failure> {
    let mut held = Vec::new();
    loop {
        held.push(Array::zeros([1 << 20], Dtype::Float32).into_tensor()?);
    }
}

fn ones(shape: [usize; 2]) -> Result<Tensor, Failure> {
    Array::full(shape, 1, Dtype::Float32).into_tensor()
}
