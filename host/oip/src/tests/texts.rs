//! Bodies as texts: what is said of those that are no requests, and answers that are no JSON.

use bytes::Bytes;
use gristmill_core::Dtype;

use super::{floats, output};
use crate::{InferRequest, InferResponse, Output, OutputData, ParseError, Room, document};

fn parse(body: &[u8]) -> Result<InferRequest, ParseError> {
    InferRequest::parse(&Bytes::copy_from_slice(body), None, &Room::default())
}

/// A request with elements of this datatype.
fn request(datatype: &str, data: &str) -> String {
    format!(
        "{{\"inputs\":[{{\"name\":\"x\",\"shape\":[1],\n \"datatype\":\"{datatype}\",\"data\":{data}}}]}}"
    )
}

#[track_caller]
fn assert_refused(body: &[u8], expected: &str) {
    let error = parse(body).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}\nof {}", String::from_utf8_lossy(body));
    for word in ["struct", "Wire", "u32", "u64", "i64", "usize", "f64", "visitor", "Param"] {
        assert!(!error.contains(word), "{error} has {word}");
    }
}

#[test]
fn a_float_that_json_has_not_is_named_with_its_cure() {
    for token in ["NaN", "Infinity", "-Infinity", "nan", "-nan", "inf", "-inf", "+Infinity", "-NaN"]
    {
        let cure = format!("{token} at line 2 column ");
        assert_refused(request("FP32", &format!("[1.0, {token}, 2.0]")).as_bytes(), &cure);
        assert_refused(request("FP64", &format!("[[{token}]]")).as_bytes(), "as binary data");
    }
    assert_refused(request("FP32", "[null]").as_bytes(), "NaN and infinity can be sent as binary");
    // A word that is none of these.
    assert_refused(request("FP32", "[Nothing]").as_bytes(), "expected value at line 2 column");
}

#[test]
fn a_body_in_another_encoding_is_named() {
    let text = request("FP32", "[1]");
    let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
    assert_refused(&marked, "begins with a byte order mark: send UTF-8 without one");
    for mark in [0xfeff_u16, 0xfffe] {
        let units =
            text.encode_utf16().map(|unit| if mark == 0xfeff { unit } else { unit.swap_bytes() });
        let bytes: Vec<u8> = [mark].into_iter().chain(units).flat_map(u16::to_le_bytes).collect();
        assert_refused(&bytes, "it is UTF-16: send UTF-8");
    }
    let marked = [b"\xef\xbb\xbf".as_slice(), b"{}"].concat();
    let error = document::<std::collections::BTreeMap<String, u8>>(&marked).unwrap_err();
    assert!(error.to_string().contains("byte order mark"), "{error}");
}

#[test]
fn a_number_that_does_not_fit_is_printed_as_it_was_sent() {
    let long = "1".repeat(400);
    for (datatype, number, expected) in [
        ("FP32", "1e39", "1e39 is out of FP32's range"),
        ("FP32", "-3.5E+38", "-3.5E+38 is out of FP32's range"),
        ("FP32", "1e400", "1e400 is out of FP64's range"),
        ("FP64", "1e99999999999", "1e99999999999 is out of FP64's range"),
        ("FP64", &long, "1111 is out of FP64's range"),
        ("UINT64", "18446744073709551616", "18446744073709551616 is not of datatype UINT64"),
        ("INT64", "-9223372036854775809", "-9223372036854775809 is not of datatype INT64"),
        ("INT64", "9007199254740993.0", "9007199254740993.0 is not of datatype INT64"),
        ("INT32", "1.0", "1.0 is not of datatype INT32"),
        ("UINT8", "256", "256 is not of datatype UINT8"),
        ("BOOL", "2", "2 is not of datatype BOOL"),
        ("BYTES", "0.10", "0.10 is not of datatype BYTES"),
    ] {
        assert_refused(request(datatype, &format!("[{number}]")).as_bytes(), expected);
        assert_refused(request(datatype, &format!("[[[\n{number}\n]]]")).as_bytes(), expected);
    }
    for (size, expected) in [
        ("9007199254740993.0", "invalid value: 9007199254740993.0, expected a whole number"),
        ("1e40", "invalid value: 1e40, expected a whole number"),
        ("100000000000000000000", "shape [100000000000000000000] is not a list of sizes"),
    ] {
        let body = request("FP32", "[1]").replace("[1],\n", &format!("[{size}],\n"));
        assert_refused(body.as_bytes(), expected);
    }
    // A word in a text is no number.
    assert_refused(request("BYTES", r#"["5\ud800"]"#).as_bytes(), "hex escape");
}

#[test]
fn a_list_is_no_object_and_no_message_names_a_type_of_rust() {
    for (body, expected) in [
        (r"[]", "expected an object with inputs"),
        (r#"[null, null, [], null]"#, "expected an object with inputs"),
        (r"null", "expected an object with inputs"),
        (r"7", "expected an object with inputs"),
        (r#"{"inputs":[["x","FP32",[1],null,[1]]]}"#, "expected an input: an object"),
        (r#"{"inputs":[7]}"#, "expected an input: an object"),
        (r#"{"inputs":{}}"#, "expected a list of inputs"),
        (r#"{"inputs":[],"parameters":[1]}"#, "expected an object of parameters"),
        (r#"{"inputs":[],"outputs":[["y",null]]}"#, "expected an output: an object"),
        (r#"{"inputs":[],"outputs":[{"name":"y","parameters":[]}]}"#, "an object of parameters"),
        (r#"{"inputs":[],"id":7}"#, "expected a text"),
        (r#"{"inputs":[],"parameters":{"priority":-1}}"#, "\"priority\" is -1: must be a number"),
        (r#"{"inputs":[],"parameters":{"priority":"high"}}"#, "expected a whole number"),
        (r#"{"inputs":[],"parameters":{"timeout":1.5}}"#, "expected a whole number"),
        (r#"{"inputs":[{"name":"x","datatype":"FP32","shape":[1.5],"data":[1]}]}"#, "whole number"),
        (r#"{"inputs":[{"name":"x","datatype":"FP32","shape":["1"],"data":[1]}]}"#, "whole number"),
        (
            r#"{"inputs":[{"name":"x","datatype":"FP32","shape":[1],
                "parameters":{"binary_data_size":-4}}]}"#,
            "\"binary_data_size\" is -4: must be a number",
        ),
    ] {
        assert_refused(body.as_bytes(), expected);
    }
    let good = r#"{"inputs":[],"parameters":{"priority":99999999999,"timeout":1e3}}"#;
    let good = parse(good.as_bytes()).unwrap();
    assert_eq!((good.priority, good.timeout.unwrap().as_micros()), (u32::MAX, 1000));
    let list = document::<std::collections::BTreeMap<String, u8>>(b"[]");
    assert!(list.unwrap_err().to_string().contains("invalid type: sequence"));
}

#[test]
fn arrays_may_be_nested_a_hundred_times() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    parse(request("FP32", &nested(100)).as_bytes()).unwrap();
    assert_refused(request("FP32", &nested(101)).as_bytes(), "nested deeper than 100");
    assert_refused(request("FP32", &nested(100_000)).as_bytes(), "nested deeper than 100");
    // A value that is not looked at may be nested at will.
    let other = format!("{{\"inputs\":[],\"more\":{}}}", nested(100_000));
    parse(other.as_bytes()).unwrap();
}

#[test]
fn floats_that_json_has_not_are_written_as_tritons_clients_read_them() {
    let doubles = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5];
    let doubles = Output {
        name: "b".into(),
        datatype: Dtype::Float64,
        shape: [4].as_slice().into(),
        data: OutputData::Bytes(doubles.map(f64::to_le_bytes).concat().into()),
    };
    let singles = output("a", floats(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0]));
    let outputs = vec![singles, doubles];
    let response = InferResponse { model_name: "m", model_version: 7, outputs };
    let written = response.write(&InferRequest::default(), None).unwrap();
    let text = String::from_utf8(written.parts.concat()).unwrap();
    assert!(text.contains("\"data\":[NaN,Infinity,-Infinity,-1.0]"), "{text}");
    assert!(text.contains("\"data\":[NaN,Infinity,-Infinity,0.5]"), "{text}");
}
