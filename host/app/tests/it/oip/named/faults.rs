//! Requests and answers that do not fit the named inputs and outputs of a pipeline.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{digits, elements, image, photo, post, rows, server};
use crate::support::client::TestAnswer;
use crate::support::deploy::processor;
use crate::support::server::Server;

#[test]
fn requests_that_do_not_fit_are_refused_by_name() {
    let server = server();
    let good = rows(&[&photo(7)]);
    let with = |key: &str, value: Value| {
        let mut body = good.clone();
        body["inputs"][0][key] = value;
        body
    };
    let twice = json!({ "inputs": [good["inputs"][0], good["inputs"][0]] });
    let mut unknown_output = good.clone();
    unknown_output["outputs"] = json!([{ "name": "FOOD_LABEL" }]);
    let mut classes = good.clone();
    let parameters = json!({ "classification": 1 });
    classes["outputs"] = json!([{ "name": "DIGIT", "parameters": parameters }]);
    let many: Vec<_> = (0..65).map(|_| "").collect();
    let cases = [
        (
            with("name", json!("REQUEST")),
            "unknown input \\\"REQUEST\\\": the pipeline's inputs are",
        ),
        (json!({ "inputs": [] }), "input \\\"INPUT_IMAGE\\\" is missing"),
        (twice, "input \\\"INPUT_IMAGE\\\" is given twice"),
        (with("shape", json!([1])), "has shape [1]: the pipeline takes [-1, 1]"),
        (with("shape", json!([1, 1, 1])), "has shape [1, 1, 1]: the pipeline takes [-1, 1]"),
        (rows(&[]), "the request has 0 rows: a pipeline takes 1 to 64"),
        (rows(&many), "the request has 65 rows: a pipeline takes 1 to 64"),
        (rows(&["TWF%"]), "input \\\"INPUT_IMAGE\\\": base64 has '%' at position 3"),
        (rows(&[&photo(1), "TWF%"]), "row 1: input \\\"INPUT_IMAGE\\\": base64 has '%'"),
        (unknown_output, "unknown output \\\"FOOD_LABEL\\\" of model \\\"food\\\""),
        (classes, "has no classes"),
    ];
    for (body, expected) in cases {
        let answer = post(&server, "food", &body);
        let text = answer.text();
        assert!(answer.status == 400 && text.contains(expected), "{expected}: {text}");
    }
    let number = json!({ "inputs": [
        { "name": "INPUT_IMAGE", "datatype": "INT32", "shape": [1, 1], "data": [7] },
    ]});
    let named = ["input \"INPUT_IMAGE\" has datatype INT32: the pipeline takes BYTES"];
    post(&server, "food", &number).refused_by_protocol(400, &named);
    let limits = json!({ "body_bytes": 100 });
    let mut small = digits(image(Some("base64")));
    small["limits"] = limits;
    server.pipeline("acme", "small", &small);
    let named = ["row 1: input \"INPUT_IMAGE\" is over the pipeline's limit of 100 bytes"];
    let long = STANDARD.encode([0; 101]);
    post(&server, "small", &rows(&["", &long])).refused_by_protocol(413, &named);
}

/// A pipeline around `hostile` that takes deeds.
fn hostile() -> Value {
    let mut hostile = processor("hostile", json!({}));
    hostile["oip"] = json!({
        "inputs": [{ "name": "DEED", "datatype": "BYTES", "content_type": "text/plain" }],
        "outputs": [{ "name": "TEXT", "datatype": "BYTES", "pointer": "/text" }],
    });
    hostile
}

/// A request for the pipeline `deeds` with these rows.
fn post_deeds(server: &Server, deeds: &[&str]) -> TestAnswer {
    let shape = [deeds.len(), 1];
    let input = json!({ "name": "DEED", "datatype": "BYTES", "shape": shape, "data": deeds });
    post(server, "deeds", &json!({ "inputs": [input] }))
}

#[test]
fn with_debug_a_client_sees_the_lines_of_the_row_that_failed() {
    let server = server();
    server.hostile("acme");
    let mut debug = hostile();
    debug["debug"] = json!(true);
    server.pipeline("acme", "deeds", &debug);
    // The first row logs a line and ends long before the other one is stopped.
    let answer = post_deeds(&server, &["do=log-line", "do=loop"]);
    answer.refused_by_protocol(504, &["row 1: pre: "]);
    let document: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(document["plugin_error"]["lines"], json!([]), "{document}");
}

#[test]
fn the_first_row_that_fails_is_the_answer_and_is_named() {
    let server = server();
    let no_picture = STANDARD.encode("no picture");
    let answer = post(&server, "food", &rows(&[&photo(1), &no_picture, &photo(2)]));
    answer.refused_by_protocol(415, &["row 1: "]);
    // A row that traps is contained, and so is one that answers something else than JSON.
    server.hostile("acme");
    server.pipeline("acme", "deeds", &hostile());
    let deeds = |deeds: &[&str]| post_deeds(&server, deeds);
    deeds(&["do=panic"]).refused_by_protocol(500, &["pre: "]);
    let trapped = deeds(&["do=loop", "do=panic"]);
    trapped.refused_by_protocol(500, &["row 1: pre: "]);
    deeds(&["", ""]).refused_by_protocol(500, &["row 0: the pipeline's answer is not JSON"]);
    assert_eq!(post(&server, "food", &rows(&[&photo(7)])).status, 200);
}

#[test]
fn an_answer_without_the_values_of_the_outputs_is_named() {
    let server = server();
    let output = |datatype: &str, pointer: &str| {
        let mut pipeline = digits(image(Some("base64")));
        pipeline["oip"]["outputs"] =
            json!([{ "name": "OUT", "datatype": datatype, "pointer": pointer }]);
        server.pipeline("acme", "other", &pipeline);
        post(&server, "other", &rows(&[&photo(7)]))
    };
    for (datatype, pointer, expected) in [
        ("BYTES", "/prediction", "output \"OUT\": the pipeline's answer has no value at"),
        ("BYTES", "/label", "the value at \"/label\" of the answer: 7 is not of datatype BYTES"),
        ("INT32", "/top", "is a list, where one value must be"),
        ("INT32", "", "output \"OUT\": the value at \"\" of the answer: {\"label\":7,"),
    ] {
        output(datatype, pointer).refused_by_protocol(500, &[expected]);
    }
    assert_eq!(elements(&output("UINT8", "/top/0/label").ok(), "OUT", "UINT8"), [7]);
}

#[test]
fn a_document_is_read_back_and_all_of_its_faults_are_named() {
    let server = server();
    let at = "/admin/v1/tenants/acme/pipelines/food";
    let document = server.admin.get(at).ok();
    assert_eq!(document["oip"]["inputs"][0]["encoding"], "base64");
    assert_eq!(server.admin.put_json(at, &document).status, 200);
    let server = server.kill().start();
    assert_eq!(post(&server, "food", &rows(&[&photo(7)])).status, 200);
    let mut wrong = document;
    wrong["oip"] = json!({ "inputs": [{ "name": "A", "datatype": "FP16" }], "outputs": [{}] });
    let named = [
        "oip.inputs[0].datatype is \"FP16\": must be one of BOOL",
        "oip.outputs[0].name is missing",
        "oip.outputs[0].pointer is missing",
    ];
    let refused = server.admin.put_json(at, &wrong);
    refused.refused(422, "unprocessable", &named);
    assert!(refused.text().contains("/oip/inputs/0/datatype"), "{}", refused.text());
}
