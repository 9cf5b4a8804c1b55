use gristmill_plugin::testing;
use serde_json::{Value, json};

use super::*;

const SEVEN: &[u8] = include_bytes!("../../../../models/digits/samples/seven.png");

/// The model's input for a request.
fn ink(request: &Request) -> Vec<f32> {
    let prepared = Digits::preprocess(&testing::context().build(), request).unwrap();
    let input = prepared.get("input").unwrap();
    assert_eq!(input.dims(), [1, 1, 28, 28]);
    input.view::<f32>().unwrap().as_slice().to_vec()
}

#[test]
fn a_photo_becomes_bright_ink_on_black() {
    let ink = ink(&testing::request().body(SEVEN).build());
    assert!(ink.iter().all(|value| (0.0..=1.0).contains(value)));
    assert!(ink.contains(&0.0) && ink.contains(&1.0));
    assert!(ink.iter().sum::<f32>() < 784.0 / 2.0);
}

#[test]
fn a_part_of_a_form_is_taken_like_a_body() {
    let body = testing::request().body(SEVEN).build();
    let form = testing::request().file("photo", "seven.png", "image/png", SEVEN).build();
    assert_eq!(ink(&form), ink(&body));
}

#[test]
fn a_body_that_is_no_picture_is_refused() {
    let request = testing::request().body("seven").build();
    let failure = Digits::preprocess(&testing::context().build(), &request).unwrap_err();
    assert_eq!(failure, Failure::unsupported_media_type("not a JPEG, PNG, WebP, BMP or GIF"));
}

#[test]
fn the_answer_has_the_three_best_labels() {
    let logits = [0.0_f32, 1.0, 0.0, 3.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0];
    let outputs = testing::outputs([("output", Tensor::from_slice(&[1, 10], &logits).unwrap())]);
    let response = Digits::postprocess(&testing::context().build(), outputs, Vec::new()).unwrap();
    let answer: Value = serde_json::from_slice(&response.body).unwrap();
    let labels: Vec<_> =
        answer["top"].as_array().unwrap().iter().map(|one| &one["label"]).collect();
    assert_eq!(labels, [&json!(7), &json!(3), &json!(1)]);
    assert_eq!(answer["label"], 7);
    assert!(answer["probability"].as_f64().unwrap() > 0.99);
}
