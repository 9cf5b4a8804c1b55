mod texts;

use bytes::Bytes;
use gristmill_core::{BufferPool, ByteBudget, Dtype, Tensor, TensorInfo};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    DIMENSIONS_MAX, InferRequest, InferResponse, Output, OutputData, ParseError, Room, TENSORS_MAX,
    TEXT_BYTES_MAX,
};

fn parse(json: &Value, binary: &[u8]) -> Result<InferRequest, ParseError> {
    let header = json.to_string();
    let body: Bytes = [header.as_bytes(), binary].concat().into();
    InferRequest::parse(&body, Some(header.len()), &Room::default())
}

fn input(datatype: &str, shape: Value, data: Value) -> Value {
    json!({ "inputs": [{ "name": "x", "datatype": datatype, "shape": shape, "data": data }] })
}

fn tensor(json: &Value) -> Result<Tensor, ParseError> {
    parse(json, b"")?.inputs[0].tensor(&BufferPool::new(0))
}

#[test]
fn json_elements_are_read_flat_and_nested() {
    let flat = tensor(&input("FP32", json!([2, 2]), json!([1, 2.5, -3e2, 0]))).unwrap();
    let nested = tensor(&input("FP32", json!([2, 2]), json!([[1, 2.5], [-3e2, 0]]))).unwrap();
    assert_eq!(flat.as_f32(), Some(&[1.0, 2.5, -300.0, 0.0][..]));
    assert_eq!(flat.as_bytes(), nested.as_bytes());
    let texts = tensor(&input("BYTES", json!([2]), json!(["", "ä\""]))).unwrap();
    assert!(texts.texts().unwrap().eq(["", "ä\""].map(str::as_bytes)));
    let bools = tensor(&input("BOOL", json!([3]), json!([true, false, 1]))).unwrap();
    assert_eq!(bools.as_bytes(), [1, 0, 1]);
    let long = tensor(&input("INT64", json!([2]), json!([i64::MIN, i64::MAX]))).unwrap();
    assert_eq!(long.as_bytes(), [i64::MIN.to_le_bytes(), i64::MAX.to_le_bytes()].concat());
}

#[test]
fn a_zero_with_a_sign_is_a_whole_number() {
    for (datatype, expected) in [("INT64", &[0; 8][..]), ("UINT8", &[0]), ("BOOL", &[0])] {
        let body = format!(
            r#"{{"inputs":[{{"name":"x","datatype":"{datatype}","shape":[1],"data":[-0]}}]}}"#
        );
        let body = Bytes::from(body);
        let request = InferRequest::parse(&body, Some(body.len()), &Room::default()).unwrap();
        let tensor = request.inputs[0].tensor(&BufferPool::new(0)).unwrap();
        assert_eq!(tensor.as_bytes(), expected, "{datatype}");
    }
}

#[test]
fn faults_are_named() {
    let binary = |size: u64| {
        json!({ "inputs": [{ "name": "x", "datatype": "FP32", "shape": [1],
                             "parameters": { "binary_data_size": size } }] })
    };
    let cases = [
        (parse(&json!({}), b""), "missing field `inputs`"),
        (
            parse(&input("FP33", json!([1]), json!([1])), b""),
            "input \"x\": \"FP33\" is not a datatype",
        ),
        (parse(&input("FP32", json!([-1]), json!([1])), b""), "input \"x\": shape [-1]"),
        (parse(&input("UINT8", json!([1]), json!([256])), b""), "256 is not of datatype UINT8"),
        (parse(&input("INT8", json!([1]), json!([1.5])), b""), "1.5 is not of datatype INT8"),
        (parse(&input("INT8", json!([1]), json!(["a"])), b""), "\"a\" is not of datatype INT8"),
        (
            parse(&input("FP32", json!([1]), json!([null])), b""),
            "input \"x\": data: null is not of datatype FP32: NaN and infinity can be sent as binary",
        ),
        (parse(&input("FP16", json!([1]), json!([1])), b""), "sent as binary data only"),
        (parse(&binary(4), b"123"), "binary_data_size is 4, but only 3 bytes are left"),
        (parse(&binary(4), b"12345"), "1 bytes follow the last binary tensor"),
        (parse(&binary(u64::MAX), b"1234"), "only 4 bytes are left"),
    ];
    for (outcome, expected) in cases {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let shapes = [
        (
            input("FP32", json!([3]), json!([1, 2])),
            "data is 8 bytes long, but dtype and shape need 12",
        ),
        (input("FP32", json!([4_611_686_018_427_387_904_u64, 8]), json!([])), "overflows"),
        (input("BYTES", json!([2]), json!(["a"])), "element 1 of a BYTES tensor has no length"),
    ];
    for (document, expected) in shapes {
        let error = tensor(&document).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let body = Bytes::from_static(b"{}");
    let error = InferRequest::parse(&body, Some(3), &Room::default()).unwrap_err().to_string();
    assert!(
        error.contains("Inference-Header-Content-Length is 3, the body has 2 bytes"),
        "{error}"
    );
}

#[test]
fn lists_and_names_that_are_too_long_are_refused_while_they_are_read() {
    // The rest is not read, not even to see whether it is JSON.
    let parse = |text: &str| {
        let body = Bytes::copy_from_slice(text.as_bytes());
        InferRequest::parse(&body, None, &Room::default())
    };
    let input =
        |shape: &str| format!(r#"{{"name":"x","datatype":"UINT8","shape":[{shape}],"data":[1]}}"#);
    let ones = |count: usize| vec!["1"; count].join(",");
    let outputs = |count: usize| vec![r#"{"name":"y"}"#; count].join(",");
    let good = [
        format!(r#"{{"inputs":[{}]}}"#, input(&ones(DIMENSIONS_MAX))),
        format!(r#"{{"inputs":[{}]}}"#, vec![input("1"); TENSORS_MAX].join(",")),
        format!(r#"{{"inputs":[],"outputs":[{}]}}"#, outputs(TENSORS_MAX)),
        format!(r#"{{"inputs":[],"id":"{}"}}"#, "a".repeat(TEXT_BYTES_MAX)),
        r#"{"inputs":[],"outputs":null,"id":null,"parameters":null}"#.to_owned(),
    ];
    for text in good {
        parse(&text).unwrap();
    }
    let bad = [
        (format!(r#"{{"inputs":[{{"shape":[{},"#, ones(DIMENSIONS_MAX + 1)), "more than 32 dim"),
        (format!(r#"{{"inputs":[{},"#, vec![input("1"); TENSORS_MAX + 1].join(",")), "inputs"),
        (format!(r#"{{"outputs":[{},"#, outputs(TENSORS_MAX + 1)), "more than 1024 outputs"),
        (format!(r#"{{"id":"{}","#, "a".repeat(TEXT_BYTES_MAX + 1)), "1025 bytes"),
        (format!(r#"{{"id":"{}","#, r"\u0061".repeat(TEXT_BYTES_MAX + 1)), "1025 bytes"),
        (format!(r#"{{"inputs":"{}""#, "a".repeat(10_000)), "a list of inputs"),
    ];
    for (text, expected) in bad {
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected) && error.len() < 2000, "{error}");
    }
}

#[test]
fn elements_take_room_before_they_are_read() {
    const COUNT: usize = 1000;
    let budget = ByteBudget::new(12 * COUNT);
    let read = |shape: Value, count: usize, bytes: usize| {
        let text = input("INT64", shape, json!(vec![1; count])).to_string();
        InferRequest::parse(&text.into(), None, &Room::new(Some(&budget), bytes))
    };
    let request = read(json!([COUNT]), COUNT, 8 * COUNT).unwrap();
    assert_eq!(budget.held(), 8 * COUNT);
    let error = read(json!([COUNT]), COUNT, 8 * COUNT).unwrap_err();
    assert!(matches!(error, ParseError::OverBudget(_)), "{error}");
    drop(request);
    let error = read(json!([COUNT]), COUNT, 8 * COUNT - 1).unwrap_err().to_string();
    assert!(error.contains("8000 bytes of memory, but only 7999 are left"), "{error}");
    // Memory is taken for the elements in the text, not for those that the shape claims.
    read(json!([1_u64 << 40]), COUNT, 9 * COUNT).unwrap();
    let error = read(json!([COUNT - 1]), COUNT, 8 * COUNT).unwrap_err().to_string();
    assert!(error.contains("more elements than the shape needs"), "{error}");
    assert_eq!(budget.held(), 0);
}

#[test]
fn a_raw_body_takes_the_shape_of_its_length() {
    let info =
        |dtype, dims: &[Option<usize>]| TensorInfo { name: "x".into(), dtype, dims: dims.to_vec() };
    let raw = |info: TensorInfo, len| InferRequest::raw(&[info], true, vec![0; len].into());
    let request = raw(info(Dtype::Float32, &[None, Some(2), None]), 24).unwrap();
    assert_eq!(request.inputs[0].shape[..], [1, 2, 3]);
    assert!(request.binary_output);
    let request = raw(info(Dtype::String, &[None]), 3).unwrap();
    assert_eq!(request.inputs[0].texts().unwrap(), [&b"\0\0\0"[..]]);
    assert!(raw(info(Dtype::Float32, &[None, Some(2)]), 9).is_err());
    assert!(raw(info(Dtype::Float32, &[None, None, None]), 8).is_err());
    assert!(InferRequest::raw(&[], true, Bytes::new()).is_err());
}

#[test]
fn aligned_binary_tensors_are_not_copied() {
    let pool = BufferPool::new(0);
    let header = json!({ "inputs": [{ "name": "x", "datatype": "UINT8", "shape": [4],
                                      "parameters": { "binary_data_size": 4 } }] });
    let request = parse(&header, b"1234").unwrap();
    let tensor = request.inputs[0].tensor(&pool).unwrap();
    assert_eq!(tensor.as_bytes().as_ptr(), request.inputs[0].data.as_ptr());
}

fn output(name: &str, tensor: Tensor) -> Output {
    let (datatype, shape) = (tensor.dtype(), tensor.shape().into());
    Output { name: name.into(), datatype, shape, data: OutputData::Tensor(tensor) }
}

fn floats(values: &[f32]) -> Tensor {
    let buffer = BufferPool::new(0)
        .copy_from(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>());
    Tensor::new(Dtype::Float32, [values.len()].as_slice().into(), buffer).unwrap()
}

fn answer(request: &InferRequest, outputs: Vec<Output>) -> Result<(Value, Vec<u8>), ParseError> {
    let response = InferResponse { model_name: "m\"", model_version: 7, outputs };
    let written = response.write(request, None)?;
    let body = written.parts.concat();
    let (header, binary) = body.split_at(written.header_len.unwrap_or(body.len()));
    Ok((serde_json::from_slice(header).unwrap(), binary.to_vec()))
}

#[test]
fn outputs_are_written_as_asked_for() {
    let request = parse(
        &json!({ "id": "4\n2", "inputs": [], "parameters": { "binary_data_output": true },
                 "outputs": [{ "name": "a", "parameters": { "binary_data": false } }, { "name": "b" }] }),
        b"",
    );
    let outputs = || vec![output("a", floats(&[1.0, 2.5])), output("b", floats(&[f32::NAN]))];
    let (document, binary) = answer(&request.unwrap(), outputs()).unwrap();
    assert_eq!(
        document,
        json!({ "model_name": "m\"", "model_version": "7", "id": "4\n2", "outputs": [
            { "name": "a", "datatype": "FP32", "shape": [2], "data": [1.0, 2.5] },
            { "name": "b", "datatype": "FP32", "shape": [1], "parameters": { "binary_data_size": 4 } },
        ] })
    );
    assert_eq!(binary, f32::NAN.to_le_bytes());
}

#[test]
fn large_binary_outputs_are_not_copied() {
    let large = floats(&vec![1.0; 10_000]);
    let place = large.as_bytes().as_ptr();
    let request = InferRequest { binary_output: true, ..InferRequest::default() };
    let outputs = vec![output("a", large)];
    let response = InferResponse { model_name: "m", model_version: 7, outputs };
    let written = response.write(&request, None).unwrap();
    let last = written.parts.last().unwrap();
    assert_eq!((last.len(), last.as_ptr()), (40_000, place));
}

#[test]
fn long_json_counts_while_it_is_written() {
    let request = InferRequest::default();
    let budget = ByteBudget::new(1 << 20);
    // Each of its characters takes six in JSON.
    let text = "\u{1}".repeat(100 << 10);
    let texts: Bytes = crate::from_texts(&[&text, "ä", ""]).into();
    let output = |count: usize| Output {
        name: "a".into(),
        datatype: Dtype::String,
        shape: [count].as_slice().into(),
        data: OutputData::Bytes(texts.repeat(count).into()),
    };
    let write = |count: usize| {
        let outputs = vec![output(count)];
        let response = InferResponse { model_name: "m", model_version: 7, outputs };
        let written = response.write(&request, Some(budget.hold(0)));
        (written, budget.held())
    };
    let (written, held) = write(1);
    let written = written.unwrap().parts.concat();
    assert!(held > 300 << 10 && held <= written.len(), "{held} of {}", written.len());
    let document: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(document["outputs"][0]["data"], json!([text, "ä", ""]));
    let (refused, _) = write(3);
    assert!(matches!(refused, Err(ParseError::OverBudget(_))));
    assert_eq!(budget.held(), 0);
}

proptest! {
    #[test]
    fn any_bytes_are_a_request_or_an_error(body: Vec<u8>, header_len: Option<u16>) {
        let _ = InferRequest::parse(&body.into(), header_len.map(usize::from), &Room::default());
    }

    #[test]
    fn any_document_and_any_tail_are_a_request_or_an_error(
        datatype in "FP32|INT8|BOOL|BYTES|FP16|UINT64|X",
        shape: Vec<i64>,
        size: Option<u64>,
        data in "\\[(1|true|\"a\"|\\[1,2\\]|-3.5|1e400)(,(0|false|\"\"|\\[\\])){0,3}\\]|7|null",
        tail: Vec<u8>,
    ) {
        let size = size.map_or(String::new(), |size| format!(",\"parameters\":{{\"binary_data_size\":{size}}}"));
        let header = format!(
            "{{\"inputs\":[{{\"name\":\"x\",\"datatype\":\"{datatype}\",\"shape\":{shape:?}{size},\"data\":{data}}}]}}"
        );
        let body: Bytes = [header.as_bytes(), &tail].concat().into();
        if let Ok(request) = InferRequest::parse(&body, Some(header.len()), &Room::default()) {
            let _ = request.inputs[0].tensor(&BufferPool::new(0));
            let _ = request.inputs[0].texts();
        }
    }

    #[test]
    fn floats_survive_json(values in proptest::collection::vec(-1e30_f32..1e30, 0..20)) {
        let request = InferRequest::default();
        let (document, _) = answer(&request, vec![output("a", floats(&values))]).unwrap();
        let back = tensor(&input("FP32", json!([values.len()]), document["outputs"][0]["data"].clone()));
        let back = back.unwrap();
        prop_assert_eq!(back.as_f32().unwrap(), &values[..]);
    }
}
