//! A photo of a handwritten digit in, its label out. The photo is the body, the first part of a
//! form, or base64 or a data URL in JSON: `{"image": ".."}`.
//!
//! The model takes 28x28 values from 0 to 1, with bright ink on black (models/digits/README.md).

use gristmill_plugin::image::{self, Filter, Pixels};
use gristmill_plugin::{
    Blob, Context, Failure, Outputs, Prepared, Processor, Request, Response, Tensor,
};
use serde::Serialize;

const SIZE: u32 = 28;
const DIGITS: usize = 10;

struct Digits;

#[derive(Serialize)]
struct Reading {
    label: usize,
    probability: f32,
    top: Vec<Candidate>,
}

#[derive(Serialize)]
struct Candidate {
    label: usize,
    probability: f32,
}

impl Processor for Digits {
    fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
        let photo = Pixels::decode(&photo_of(request)?, image::GRAY)?;
        let small = photo.resize(SIZE, SIZE, Filter::Bilinear)?;
        let ink = to_ink(&small.data());
        let shape = [1, 1, SIZE as usize, SIZE as usize];
        Ok(Prepared::new().input("input", Tensor::from_slice(&shape, &ink)?))
    }

    fn postprocess(
        _context: &Context,
        outputs: Outputs,
        _state: Vec<u8>,
    ) -> Result<Response, Failure> {
        let logits = outputs.view::<f32>("output", &[Some(1), Some(DIGITS)])?;
        let mut candidates: Vec<_> = softmax(logits.as_slice())
            .into_iter()
            .enumerate()
            .map(|(label, probability)| Candidate { label, probability })
            .collect();
        candidates.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        candidates.truncate(3);
        let Candidate { label, probability } = candidates[0];
        Response::json(&Reading { label, probability, top: candidates })
    }
}

/// The file of the photo.
fn photo_of(request: &Request) -> Result<Blob, Failure> {
    if request.content_type().as_deref() == Some("application/json") {
        return Ok(request.json_blob("/image")?);
    }
    Ok(match request.parts().into_iter().next() {
        Some(part) => part.body,
        None => request.body(),
    })
}

/// Bright ink on black, stretched to 0 to 1. A bright picture shows dark ink on paper and is
/// inverted. The loops over bytes are such that the compiler vectorises them.
fn to_ink(luma: &[u8]) -> Vec<f32> {
    let sum: u32 = luma.iter().map(|value| u32::from(*value)).sum();
    let is_bright = 2 * sum as usize > 255 * luma.len();
    let ink = |value: u8| {
        let value = f32::from(value) / 255.0;
        if is_bright { 1.0 - value } else { value }
    };
    let (lowest, highest) = luma
        .iter()
        .fold((u8::MAX, 0), |(lowest, highest), value| (lowest.min(*value), highest.max(*value)));
    let (lowest, highest) = if is_bright { (highest, lowest) } else { (lowest, highest) };
    let darkest = ink(lowest);
    let range = ink(highest) - darkest;
    if range > 0.0 {
        return luma.iter().map(|value| (ink(*value) - darkest) / range).collect();
    }
    luma.iter().copied().map(ink).collect()
}

fn softmax(logits: &[f32]) -> Vec<f32> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = logits.iter().map(|logit| (logit - largest).exp()).collect();
    let sum: f32 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

gristmill_plugin::export_processor!(Digits);

#[cfg(test)]
mod tests;
