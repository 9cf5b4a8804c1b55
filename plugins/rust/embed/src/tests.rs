use gristmill_plugin::testing;
use serde_json::{Value, json};

use super::*;

const WORDS: [&str; 6] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad"];

fn preprocess(body: &Value) -> Result<Prepared, Failure> {
    let _words = testing::tokenizer("tokenizer.json", &WORDS);
    Embed::preprocess(&testing::context().build(), &testing::request().json(body).build())
}

fn numbers(prepared: &Prepared, name: &str) -> Vec<i64> {
    prepared.get(name).unwrap().view::<i64>().unwrap().as_slice().to_vec()
}

fn asked(body: &Value) -> Asked {
    serde_json::from_slice(&preprocess(body).unwrap().state).unwrap()
}

#[test]
fn texts_become_tokens_and_a_mask() {
    let prepared = preprocess(&json!({ "texts": ["good bad", "", "bad"] })).unwrap();
    assert_eq!(prepared.get("input_ids").unwrap().dims(), [3, 2]);
    assert_eq!(numbers(&prepared, "input_ids"), [4, 5, 0, 0, 5, 0]);
    assert_eq!(numbers(&prepared, "attention_mask"), [1, 1, 0, 0, 1, 0]);
}

#[test]
fn both_forms_of_a_request_are_understood() {
    let plain = |is_normal| Asked { form: Form::Plain { is_normal }, tokens: 1 };
    assert_eq!(asked(&json!({ "texts": ["bad"] })), plain(false));
    assert_eq!(asked(&json!({ "texts": ["bad"], "norm": true })), plain(true));
    let openai = |is_base64, tokens| Asked { form: Form::OpenAi { is_base64 }, tokens };
    assert_eq!(asked(&json!({ "input": "good bad", "model": "m" })), openai(false, 2));
    let body = json!({ "input": ["good", "bad bad"], "model": "m", "encoding_format": "base64",
        "dimensions": 256, "user": "someone" });
    assert_eq!(asked(&body), openai(true, 3));
    let body = json!({ "input": "bad", "encoding_format": null, "dimensions": null });
    assert_eq!(asked(&body), openai(false, 1));
}

#[test]
fn vectors_are_those_of_the_model() {
    let body = json!({ "texts": ["good", "bad"] });
    let state = preprocess(&body).unwrap().state;
    let vectors = Tensor::from_slice(&[2, 2], &[0.5_f32, -1.0, 0.25, 3.0]).unwrap();
    let outputs = testing::outputs([("vectors", vectors)]);
    let response = Embed::postprocess(&testing::context().build(), outputs, state).unwrap();
    assert_eq!(response.body, br#"{"vectors":[[0.5,-1.0],[0.25,3.0]]}"#);
}

#[test]
fn rows_are_written_as_numbers_or_in_base64() {
    let vectors = Tensor::from_slice(&[2, 2], &[0.5_f32, -1.0, 0.25, 3.0]).unwrap();
    let written = |is_base64| serde_json::to_value(items(&vectors, is_base64).unwrap()).unwrap();
    let item = |at: usize, embedding: Value| {
        let object = "embedding";
        json!({ "object": object, "index": at, "embedding": embedding })
    };
    assert_eq!(written(false), json!([item(0, json!([0.5, -1.0])), item(1, json!([0.25, 3.0]))]));
    let base64 = [item(0, json!("AAAAPwAAgL8=")), item(1, json!("AACAPgAAQEA="))];
    assert_eq!(written(true), json!(base64));
}

#[test]
fn what_is_not_a_list_of_texts_is_refused() {
    for (body, text) in [
        (json!({}), "/input is missing"),
        (json!([]), "/input is missing"),
        (json!({ "texts": "good" }), "texts is not a list of texts"),
        (json!({ "texts": [["good"]] }), "texts is not a list of texts"),
        (json!({ "texts": ["good", 1] }), "/texts/1 is a number, not a text"),
        (json!({ "input": [[1, 2]] }), "/input/0/0 is a number, not a text"),
        (json!({ "texts": ["good"], "norm": 1 }), "/norm"),
        (
            json!({ "input": "good", "encoding_format": "int8" }),
            "encoding_format is \"int8\", not \"float\" or \"base64\"",
        ),
    ] {
        let Err(Failure::InvalidInput(found)) = preprocess(&body) else { panic!("{body}") };
        assert!(found.contains(text), "{body}: {found}");
    }
}

#[test]
fn too_much_is_refused_with_the_limit() {
    let long = |words: usize| "bad ".repeat(words);
    let mut padded = vec!["bad".to_owned(); 1001];
    padded[1000] = long(600);
    for (body, text) in [
        (json!({ "texts": [] }), "texts has 0 texts; a request may have 1 to 2048"),
        (
            json!({ "input": vec!["bad"; 2049] }),
            "input has 2049 texts; a request may have 1 to 2048",
        ),
        (json!({ "texts": ["bad", long(8193)] }), "texts/1 has 8193 tokens; a text may have 8192"),
        (
            json!({ "input": padded }),
            "1001 texts as long as input/1000, the longest, which has 600 tokens, would make \
             600600 tokens; a request may have 524288: send long texts apart",
        ),
        (
            json!({ "input": "bad", "dimensions": 64 }),
            "dimensions is 64; this model's vectors have 256",
        ),
    ] {
        assert_eq!(preprocess(&body).unwrap_err(), Failure::unprocessable(text));
    }
}
