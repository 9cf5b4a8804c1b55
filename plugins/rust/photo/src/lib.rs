//! A photo in, what is on it out: the five best of ImageNet's labels. The photo is the body, the
//! file `image` of a form, or base64 or a data URL in JSON: `{"image": ".."}`.
//!
//! The model is EfficientNet-Lite0, and `labels.txt` has a line for each of its classes
//! (models/photo/README.md).

use gristmill_plugin::image::{self, Color, Filter, Pixels, ResizedSize, TensorOptions};
use gristmill_plugin::{
    Blob, Context, Failure, Outputs, Prepared, Processor, Request, Response, assets,
};
use serde::Serialize;

/// The shorter side of the photo, of which the middle is cropped.
const SHORTER: u32 = 256;
const SIDE: u32 = 224;
/// As the model was trained, for red, green and blue alike.
const MEAN: f32 = 127.0;
const STD: f32 = 128.0;
const TOP: u32 = 5;

struct Photo;

#[derive(Serialize)]
struct Answer<'a> {
    prediction: &'a str,
    probability: f32,
    top: Vec<Candidate<'a>>,
}

#[derive(Serialize)]
struct Candidate<'a> {
    label: &'a str,
    probability: f32,
}

impl Processor for Photo {
    fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
        let size = ResizedSize::Shorter(SHORTER);
        let photo = Pixels::decode_resized(&photo_of(request)?, image::RGB, size, Filter::Bicubic)?;
        let options = TensorOptions {
            scale: 1.0,
            mean: vec![MEAN; 3],
            std: vec![STD; 3],
            ..image::nchw(Color::Rgb)
        };
        let images = photo.center_crop(SIDE, SIDE)?.to_tensor(&options)?;
        Ok(Prepared::new().input("images", images))
    }

    fn postprocess(
        _context: &Context,
        outputs: Outputs,
        _state: Vec<u8>,
    ) -> Result<Response, Failure> {
        let text = assets::text("labels.txt")?;
        let labels: Vec<&str> = text.lines().collect();
        let logits = outputs.get("logits")?;
        if logits.dims() != [1, labels.len()] {
            let (lines, shape) = (labels.len(), logits.dims());
            let fault =
                format!("labels.txt has {lines} lines, but the logits have shape {shape:?}");
            return Err(Failure::internal(fault));
        }
        let probabilities =
            logits.softmax().ok_or_else(|| Failure::internal("the logits are not float32"))?;
        let top: Vec<_> = probabilities
            .top_k(0, TOP)
            .into_iter()
            .map(|found| Candidate {
                label: labels[found.index as usize],
                probability: found.value,
            })
            .collect();
        let Candidate { label: prediction, probability } = top[0];
        Response::json(&Answer { prediction, probability, top })
    }
}

/// The file of the photo.
fn photo_of(request: &Request) -> Result<Blob, Failure> {
    match request.content_type().as_deref() {
        Some("application/json") => Ok(request.json_blob("/image")?),
        Some("multipart/form-data") => Ok(request.file("image")?.body),
        _ => Ok(request.body()),
    }
}

gristmill_plugin::export_processor!(Photo);

#[cfg(test)]
mod tests;
