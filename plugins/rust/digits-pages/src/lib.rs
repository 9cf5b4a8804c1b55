//! Pictures of handwritten digits in, the digits in their order out. The body is
//! `{"images": ["..", ".."]}`, each of them in base64 or a data URL, and the answer is
//! `{"digits": [4, 2], "text": "42"}`.
//!
//! It is a handler: it runs the model `digits` once for each picture, side by side, so that the
//! runs share batches with each other and with those of other requests. The model takes 28x28
//! values from 0 to 1, with bright ink on black (models/digits/README.md).

use gristmill_plugin::image::{self, ChannelStatistics, Color, Filter, Pixels, TensorOptions};
use gristmill_plugin::models::{self, Run};
use gristmill_plugin::{
    Blob, Context, Failure, HandleError, Handler, Outputs, Request, Response, Tensor,
};
use serde::{Deserialize, Serialize};

/// The model's name in the pipeline's document.
const MODEL: &str = "digits";
const SIZE: u32 = 28;
/// The largest number of pictures of a request.
const PICTURES_MAX: usize = 64;

struct Pages;

#[derive(Deserialize)]
struct Body {
    images: Vec<String>,
}

#[derive(Serialize)]
struct Reading {
    digits: Vec<u32>,
    text: String,
}

impl Handler for Pages {
    fn handle(_context: &Context, request: &Request) -> Result<Response, HandleError> {
        let Body { images } = request.json()?;
        if images.len() > PICTURES_MAX {
            let text = format!("{} pictures are over the limit of {PICTURES_MAX}", images.len());
            return Err(Failure::unprocessable(text).into());
        }
        let inputs: Vec<_> = images.iter().map(|text| ink(text)).collect::<Result<_, _>>()?;
        let run = |input| Run::new(MODEL).input("input", input);
        let runs: Vec<_> = inputs.iter().map(run).collect();
        let mut digits = Vec::with_capacity(runs.len());
        for outputs in models::infer_all(&runs) {
            digits.push(digit(&outputs?)?);
        }
        let text = digits.iter().map(u32::to_string).collect();
        Ok(Response::json(&Reading { digits, text })?)
    }
}

/// The model's input for a picture in base64: bright ink on black, stretched to 0 to 1. A bright
/// picture shows dark ink on paper and is inverted: its brightest value becomes 0.
fn ink(base64: &str) -> Result<Tensor, Failure> {
    let picture = Pixels::decode(&Blob::from_base64(base64)?, image::GRAY)?;
    let small = picture.resize(SIZE, SIZE, Filter::Bilinear)?;
    let ChannelStatistics { min, max, mean } = small.statistics()[0];
    let (min, max) = (f32::from(min) / 255.0, f32::from(max) / 255.0);
    let (ground, range) = if mean > 127.5 { (max, min - max) } else { (min, max - min) };
    // A picture of one value is ground only.
    let range = if range == 0.0 { 1.0 } else { range };
    let options =
        TensorOptions { mean: vec![ground], std: vec![range], ..image::nchw(Color::Gray) };
    Ok(small.to_tensor(&options)?)
}

/// The digit with the largest logit.
fn digit(outputs: &Outputs) -> Result<u32, Failure> {
    let best = outputs.get("output")?.argmax();
    let none = || Failure::internal("the model gave no logits");
    best.first().map(|best| best.index).ok_or_else(none)
}

gristmill_plugin::export_handler!(Pages);

#[cfg(test)]
mod tests;
