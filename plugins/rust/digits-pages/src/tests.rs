use std::cell::Cell;
use std::collections::HashMap;

use gristmill_plugin::{InferError, testing};
use serde_json::{Value, json};

use super::*;

const TWO: &[u8] = include_bytes!("../../../../models/digits/samples/2.png");
/// Dark ink on paper.
const THREE: &[u8] = include_bytes!("../../../../models/digits/samples/three.jpg");

/// The answer to these pictures.
fn handle(pictures: &[&[u8]]) -> Result<Response, HandleError> {
    let images: Vec<_> = pictures.iter().map(testing::blob).collect();
    let request = testing::request().json(&HashMap::from([("images", images)])).build();
    Pages::handle(&testing::context().build(), &request)
}

/// A model that finds 4, then 5, and so on, in pictures of bright ink on black.
fn counting(inputs: &[(&str, &Tensor)], next: &Cell<usize>) -> Outputs {
    let [("input", input)] = inputs else { panic!("{inputs:?}") };
    assert_eq!(input.dims(), [1, 1, 28, 28]);
    let ink = input.view::<f32>().unwrap();
    assert!(ink.as_slice().iter().all(|value| (-1e-3..=1.001).contains(value)));
    assert!(ink.as_slice().iter().sum::<f32>() < 784.0 / 2.0);
    let mut logits = [0.0_f32; 10];
    logits[next.replace(next.get() + 1)] = 9.0;
    testing::outputs([("output", Tensor::from_slice(&[1, 10], &logits).unwrap())])
}

#[test]
fn each_picture_gives_a_digit() {
    let next = Cell::new(4);
    let _digits = testing::model("digits", move |inputs| Ok(counting(inputs, &next)));
    let response = handle(&[TWO, THREE, TWO]).unwrap();
    let answer: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(answer, json!({ "digits": [4, 5, 6], "text": "456" }));
    assert_eq!(handle(&[]).unwrap().body, br#"{"digits":[],"text":""}"#);
}

#[test]
fn what_is_no_picture_is_refused() {
    let error = handle(&[TWO, b"seven"]).unwrap_err();
    let failure = Failure::unsupported_media_type("not a JPEG, PNG, WebP, BMP or GIF");
    assert_eq!(error, HandleError::Failure(failure));
    let error = handle(&[TWO; PICTURES_MAX + 1]).unwrap_err();
    let failure = Failure::unprocessable("65 pictures are over the limit of 64");
    assert_eq!(error, HandleError::Failure(failure));
}

#[test]
fn an_error_of_the_model_is_the_answer() {
    let busy = InferError::Overloaded("busy".into());
    let error = busy.clone();
    let _digits = testing::model("digits", move |_| Err(error.clone()));
    assert_eq!(handle(&[TWO]).unwrap_err(), HandleError::Infer(busy));
}
