//! A picture in, the lines of text in it out, as RapidOCR reads them with PP-OCR's models
//! (models/ocr/README.md). The picture is the body, the first part of a form, or base64 or a data
//! URL in JSON: `{"image": ".."}`. The answer is
//! `{"lines": [{"text": "..", "score": 0.98, "box": [[x, y], ..]}]}`, or with `?format=png` the
//! picture with the lines drawn on it.
//!
//! It is a handler of three models: `detect` finds where text stands, `angle` whether a line is
//! upside down, and `read` its characters. `angle` and `read` run once for each line, side by side,
//! so that the server may join lines, also those of other requests, to batches where that pays.

mod boxes;
mod components;
mod crop;
mod geometry;
mod lines;
mod page;
mod resample;

use gristmill_plugin::image::{self, Encoding, Pixels};
use gristmill_plugin::{
    Blob, Context, Failure, HandleError, Handler, Outputs, Request, Response, Tensor, assets,
    models,
};
use serde::Serialize;

use self::crop::Crop;
use self::geometry::Quad;
use self::page::Page;

/// A line with a lower score is left out.
const SCORE_MIN: f64 = 0.5;
const RED: [u8; 3] = [255, 0, 0];
/// A longer text is cut off in the drawn picture.
const LABEL_MAX: usize = 256;

struct Ocr;

#[derive(Serialize)]
struct Answer {
    lines: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    text: String,
    score: f64,
    /// The corners in pixels of the picture, clockwise from the upper left one.
    #[serde(rename = "box")]
    corners: Quad,
}

impl Handler for Ocr {
    fn handle(_context: &Context, request: &Request) -> Result<Response, HandleError> {
        let is_drawn = is_drawn(request)?;
        let keys = keys()?;
        let picture = Pixels::decode(&picture_of(request)?, image::RGB)?;
        let page = Page::of(&picture)?;
        let found = models::infer("detect", &[("x", &page.detector_input()?)])?;
        let boxes = boxes::of_map(only(&found)?, page.size())?;
        let crops = boxes.iter().map(|corners| Crop::of(page.pixels(), corners));
        let mut crops = crops.collect::<Result<Vec<_>, _>>()?;
        lines::turn_upright(&mut crops)?;
        let texts = lines::read(&crops, &keys)?;
        let lines = boxes.iter().zip(texts).filter(|(_, (_, score))| *score >= SCORE_MIN);
        let lines = lines.map(|(corners, (text, score))| Line {
            text,
            score,
            corners: page.on_picture(*corners),
        });
        let lines: Vec<_> = lines.collect();
        if is_drawn { Ok(drawn(&picture, &lines)?) } else { Ok(Response::json(&Answer { lines })?) }
    }
}

/// Whether the client wants the picture with the lines drawn on it.
fn is_drawn(request: &Request) -> Result<bool, Failure> {
    match request.query_value("format").as_deref() {
        None | Some("json") => Ok(false),
        Some("png") => Ok(true),
        Some(other) => Err(Failure::invalid_input(format!("format is {other:?}, not json or png"))),
    }
}

/// The file of the picture.
fn picture_of(request: &Request) -> Result<Blob, Failure> {
    if request.content_type().as_deref() == Some("application/json") {
        return Ok(request.json_blob("/image")?);
    }
    Ok(match request.parts().into_iter().next() {
        Some(part) => part.body,
        None => request.body(),
    })
}

/// The characters that the model `read` knows, one a line, in the order of its classes.
fn keys() -> Result<String, Failure> {
    assets::text("keys.txt")
}

/// The output of a model that has one. Each export of PP-OCR has another name for it.
fn only(outputs: &Outputs) -> Result<&Tensor, Failure> {
    let first = outputs.iter().next();
    first.map(|(_, tensor)| tensor).ok_or_else(|| Failure::internal("the model has no output"))
}

/// The picture with the lines' outlines and texts on it.
fn drawn(picture: &Pixels, lines: &[Line]) -> Result<Response, Failure> {
    let shapes: Vec<_> = lines
        .iter()
        .flat_map(|line| {
            let text: String = line.text.chars().take(LABEL_MAX).collect();
            let [x, y] = line.corners[0];
            [image::polygon(&line.corners, RED, 2), image::label([x, y - 10.0], &text, RED, 1)]
        })
        .collect();
    let png = picture.draw(&shapes)?.encode(Encoding::Png)?;
    Ok(Response::new("image/png", image::bytes(&png)))
}

gristmill_plugin::export_handler!(Ocr);
