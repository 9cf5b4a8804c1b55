use gristmill_plugin::{Tensor, testing};
use serde_json::{Value, json};

use super::*;

const PHOTO: &[u8] = include_bytes!("../../../../benches/scenarios/photo.jpg");

/// The model's input for a request.
fn input(request: &Request) -> Vec<f32> {
    let prepared = Photos::preprocess(&testing::context().build(), request).unwrap();
    let input = prepared.get("input").unwrap();
    assert_eq!(input.dims(), [1, 3, 224, 224]);
    input.view::<f32>().unwrap().as_slice().to_vec()
}

#[test]
fn a_photo_becomes_normalised_channels() {
    let input = input(&testing::request().body(PHOTO).build());
    let (black, white) = ((0.0 - 0.485) / 0.229, (1.0 - 0.406) / 0.225);
    assert!(input.iter().all(|value| (black - 0.01..=white + 0.01).contains(value)));
    let (lowest, highest) = input
        .iter()
        .fold((f32::MAX, f32::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
    assert!(lowest < -1.0 && highest > 1.0, "{lowest} to {highest}");
}

#[test]
fn a_part_of_a_form_is_taken_like_a_body() {
    let body = testing::request().body(PHOTO).build();
    let form = testing::request().file("file", "photo.jpg", "image/jpeg", PHOTO).build();
    assert_eq!(input(&form), input(&body));
}

#[test]
fn a_body_that_is_no_picture_is_refused() {
    let request = testing::request().body("photo").build();
    let failure = Photos::preprocess(&testing::context().build(), &request).unwrap_err();
    assert_eq!(failure, Failure::unsupported_media_type("not a JPEG, PNG, WebP, BMP or GIF"));
}

#[test]
fn the_answer_has_the_five_best_labels() {
    let mut logits = vec![0.0_f32; LABELS];
    for (label, logit) in [(486, 20.0), (3, 9.0), (999, 8.0), (0, 7.0), (500, 6.0), (501, 5.0)] {
        logits[label] = logit;
    }
    let outputs =
        testing::outputs([("output", Tensor::from_slice(&[1, LABELS], &logits).unwrap())]);
    let response = Photos::postprocess(&testing::context().build(), outputs, Vec::new()).unwrap();
    let answer: Value = serde_json::from_slice(&response.body).unwrap();
    let labels: Vec<_> =
        answer["top"].as_array().unwrap().iter().map(|one| &one["label"]).collect();
    assert_eq!(labels, [&json!(486), &json!(3), &json!(999), &json!(0), &json!(500)]);
    assert_eq!(answer["label"], 486);
    assert!(answer["probability"].as_f64().unwrap() > 0.99);
}
