use gristmill_plugin::{Tensor, testing};
use serde_json::{Value, json};

use super::*;

const PHOTO: &[u8] = include_bytes!("../../../../benches/scenarios/photo.jpg");

/// The model's input for a request.
fn images(request: &Request) -> Vec<f32> {
    let prepared = Photo::preprocess(&testing::context().build(), request).unwrap();
    let images = prepared.get("images").unwrap();
    assert_eq!(images.dims(), [1, 3, 224, 224]);
    images.view::<f32>().unwrap().as_slice().to_vec()
}

fn refused(request: &Request) -> Failure {
    Photo::preprocess(&testing::context().build(), request).unwrap_err()
}

/// The answer for these logits.
fn answer(logits: &[f32]) -> Result<Value, Failure> {
    let logits = Tensor::from_slice(&[1, logits.len()], logits).unwrap();
    let outputs = testing::outputs([("logits", logits)]);
    let response = Photo::postprocess(&testing::context().build(), outputs, Vec::new())?;
    Ok(serde_json::from_slice(&response.body).unwrap())
}

#[test]
fn a_photo_becomes_values_from_minus_1_to_1() {
    let images = images(&testing::request().body(PHOTO).build());
    let (lowest, highest) = images
        .iter()
        .fold((f32::MAX, f32::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
    assert!((-127.0 / 128.0..0.0).contains(&lowest), "{lowest}");
    assert!(highest > 0.0 && highest <= 1.0, "{highest}");
}

#[test]
fn the_photo_is_taken_from_the_body_and_from_a_form() {
    let body = images(&testing::request().body(PHOTO).build());
    let form = testing::request().part("note", "x");
    let form = form.file("image", "photo.jpg", "image/jpeg", PHOTO).build();
    assert_eq!(images(&form), body);
}

#[test]
fn what_is_not_a_photo_is_refused() {
    let text = refused(&testing::request().body("photo").build());
    assert_eq!(text, Failure::unsupported_media_type("not a JPEG, PNG, WebP, BMP or GIF"));
    let form = testing::request().file("photo", "photo.jpg", "image/jpeg", PHOTO).build();
    let missing = Failure::invalid_input("the form has no part \"image\", but \"photo\"");
    assert_eq!(refused(&form), missing);
    let json = refused(&testing::request().json(&json!({ "picture": "" })).build());
    assert!(matches!(json, Failure::InvalidInput(text) if text.contains("/image is missing")));
}

#[test]
fn logits_become_the_five_best_labels() {
    let _labels = testing::asset("labels.txt", "tench\ncat\ndog\ncup\ncar\nbus\n");
    let answer = answer(&[0.0, 9.0, 1.0, 8.0, 2.0, 3.0]).unwrap();
    let top: Vec<_> =
        answer["top"].as_array().unwrap().iter().map(|one| one["label"].clone()).collect();
    assert_eq!(top, ["cat", "cup", "bus", "car", "dog"]);
    assert_eq!(answer["prediction"], "cat");
    assert_eq!(answer["probability"], answer["top"][0]["probability"]);
    assert!((answer["probability"].as_f64().unwrap() - 0.729).abs() < 1e-3, "{answer}");
}

#[test]
fn labels_that_do_not_fit_the_model_are_named() {
    let _labels = testing::asset("labels.txt", "tench\ncat\n");
    let fault = Failure::internal("labels.txt has 2 lines, but the logits have shape [1, 3]");
    assert_eq!(answer(&[0.0, 1.0, 2.0]).unwrap_err(), fault);
}
