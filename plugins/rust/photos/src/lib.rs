//! A photo in, the five best labels out, as classifiers that are trained on ImageNet take it.
//!
//! `cargo xtask bench peers` measures it around models/photos.

use gristmill_plugin::image::{self, Filter, Pixels, ResizedSize};
use gristmill_plugin::{Context, Failure, Outputs, Prepared, Processor, Request, Response};
use serde::Serialize;

/// The shorter side of the photo, of which the middle is cropped.
const SHORTER: u32 = 256;
const SIDE: u32 = 224;
const LABELS: usize = 1000;
const TOP: usize = 5;

struct Photos;

#[derive(Serialize)]
struct Answer {
    label: usize,
    probability: f32,
    top: Vec<Candidate>,
}

#[derive(Serialize)]
struct Candidate {
    label: usize,
    probability: f32,
}

impl Processor for Photos {
    fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
        let photo = match request.parts().into_iter().next() {
            Some(part) => part.body,
            None => request.body(),
        };
        let size = ResizedSize::Shorter(SHORTER);
        let photo = Pixels::decode_resized(&photo, image::RGB, size, Filter::Bilinear)?;
        let photo = photo.center_crop(SIDE, SIDE)?;
        Ok(Prepared::new().input("input", photo.to_tensor(&image::imagenet())?))
    }

    fn postprocess(
        _context: &Context,
        outputs: Outputs,
        _state: Vec<u8>,
    ) -> Result<Response, Failure> {
        let logits = outputs.view::<f32>("output", &[Some(1), Some(LABELS)])?;
        let top = best(logits.as_slice());
        let Candidate { label, probability } = top[0];
        Response::json(&Answer { label, probability, top })
    }
}

/// The labels with the largest logits, the largest first, with their shares of the softmax.
fn best(logits: &[f32]) -> Vec<Candidate> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = logits.iter().map(|logit| (logit - largest).exp()).collect();
    let sum: f32 = powers.iter().sum();
    let mut labels: Vec<usize> = (0..powers.len()).collect();
    let order = |a: &usize, b: &usize| powers[*b].total_cmp(&powers[*a]);
    // Only the best ones are sorted.
    labels.select_nth_unstable_by(TOP - 1, order);
    labels.truncate(TOP);
    labels.sort_by(order);
    labels.into_iter().map(|label| Candidate { label, probability: powers[label] / sum }).collect()
}

gristmill_plugin::export_processor!(Photos);

#[cfg(test)]
mod tests;
