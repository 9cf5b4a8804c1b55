use prost::Message;
use tract_onnx::pb::tensor_proto::DataLocation;
use tract_onnx::pb::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto,
    StringStringEntryProto, TensorProto,
};

use super::*;
use crate::package::files_of;

fn tensor(entries: &[(&str, &str)]) -> TensorProto {
    let entry = |(key, value): &(&str, &str)| StringStringEntryProto {
        key: (*key).into(),
        value: (*value).into(),
    };
    TensorProto {
        name: "w".into(),
        dims: vec![2, 3],
        data_type: 1,
        external_data: entries.iter().map(entry).collect(),
        data_location: Some(DataLocation::External as i32),
        ..Default::default()
    }
}

fn model(graph: GraphProto) -> ModelProto {
    ModelProto { producer_name: "test".into(), graph: Some(graph), ..Default::default() }
}

/// The files that a model names.
fn files(model: &[u8]) -> Result<Vec<String>, Malformed> {
    let mut files = Vec::new();
    placed::<Malformed>(model, |external| {
        files.extend(external.range.map(|range| range.location));
        Ok(None)
    })?;
    Ok(files)
}

fn in_bin() -> TensorProto {
    tensor(&[("location", "w.bin")])
}

#[test]
fn files_are_found_wherever_a_model_names_them() {
    let attribute = || AttributeProto { t: Some(in_bin()), ..Default::default() };
    let node = |attribute| NodeProto { attribute: vec![attribute], ..Default::default() };
    let empty = GraphProto::default;
    let inner = GraphProto { initializer: vec![in_bin()], ..empty() };
    let subgraph = AttributeProto { graphs: vec![inner.clone()], ..Default::default() };
    let sparse = SparseTensorProto { values: Some(in_bin()), ..Default::default() };
    let function = FunctionProto { node: vec![node(attribute())], ..Default::default() };
    let graphs = [
        inner,
        GraphProto { sparse_initializer: vec![sparse], ..empty() },
        GraphProto { node: vec![node(attribute())], ..empty() },
        GraphProto { node: vec![node(subgraph)], ..empty() },
    ];
    let functions = ModelProto { functions: vec![function], ..model(empty()) };
    for model in graphs.map(model).into_iter().chain([functions]) {
        let onnx = model.encode_to_vec();
        assert_eq!(files(&onnx), Ok(vec!["w.bin".to_owned()]));
        let to = |_| {
            let location = "elsewhere".to_owned();
            Ok::<_, Malformed>(Some(Placed { location, offset: 7, length: 9 }))
        };
        let moved = placed(&onnx, to).unwrap().unwrap();
        assert_eq!(files(&moved), Ok(vec!["elsewhere".to_owned()]));
        assert!(ModelProto::decode(&moved[..]).is_ok());
    }
    let plain = model(GraphProto { name: "g".into(), ..empty() }).encode_to_vec();
    assert_eq!(files(&plain), Ok(Vec::new()));
    assert_eq!(files(b"no model"), Err(Malformed));
}

#[test]
fn a_tensor_gets_its_place_and_keeps_all_else() {
    let external = tensor(&[("location", "w.bin"), ("checksum", "x"), ("offset", "4")]);
    let kept = TensorProto { name: "kept".into(), raw_data: vec![1], ..Default::default() };
    // It has its own data, so where else it might be means nothing.
    let idle = TensorProto { data_location: None, ..in_bin() };
    let initializer = vec![kept.clone(), external.clone(), idle];
    let onnx = model(GraphProto { initializer, name: "g".into(), ..Default::default() });
    let mut seen = Vec::new();
    let moved = placed(&onnx.encode_to_vec(), |external| {
        seen.push(external);
        let location = "archive".to_owned();
        Ok::<_, Malformed>(Some(Placed { location, offset: 512, length: 24 }))
    });
    let range = Range { location: "w.bin".into(), offset: 4, length: None };
    let expected = External { tensor: "w".into(), range: Ok(range), needed: Some(24) };
    assert_eq!(seen, [expected]);
    let moved = ModelProto::decode(&moved.unwrap().unwrap()[..]).unwrap();
    let tensors = &moved.graph.as_ref().unwrap().initializer;
    let placed = [("location", "archive"), ("offset", "512"), ("length", "24")];
    assert_eq!(tensors[..2], [kept, tensor(&placed)]);
    assert!(tensors[2].external_data.is_empty());
    assert_eq!(moved.producer_name, "test");
}

#[test]
fn a_model_names_no_more_files_than_a_package_has() {
    let onnx = |files: usize| {
        let in_file = |at: usize| tensor(&[("location", &format!("./f{at}"))]);
        let initializer = (0..files).map(in_file).collect();
        model(GraphProto { initializer, ..Default::default() }).encode_to_vec()
    };
    assert_eq!(files_of(&onnx(4095)).unwrap().len(), 4095);
    let error = files_of(&onnx(4096)).unwrap_err().to_string();
    assert!(error.starts_with("the model and its data have more than 4096 files"), "{error}");
}

#[test]
fn a_place_that_is_not_said_once_is_unclear() {
    let no_number = |key, value: &str| Unclear::NoNumber { key, value: value.into() };
    let cases: [(&[(&str, &str)], Unclear); 6] = [
        (&[], Unclear::Missing("location")),
        (&[("offset", "1")], Unclear::Missing("location")),
        (&[("location", "a"), ("location", "b")], Unclear::Twice("location")),
        (&[("location", "a"), ("offset", "-1")], no_number("offset", "-1")),
        (&[("location", "a"), ("length", "0x8")], no_number("length", "0x8")),
        (&[("location", "a"), ("length", "1"), ("length", "2")], Unclear::Twice("length")),
    ];
    for (entries, unclear) in cases {
        let initializer = vec![tensor(entries)];
        let onnx = model(GraphProto { initializer, ..Default::default() }).encode_to_vec();
        let mut seen = Vec::new();
        let outcome = placed::<Malformed>(&onnx, |external| {
            seen.push(external.range);
            Ok(None)
        });
        assert_eq!((outcome, seen), (Ok(None), vec![Err(unclear)]), "{entries:?}");
    }
}

#[test]
fn messages_that_are_nested_deeply_are_refused() {
    let mut graph = GraphProto { initializer: vec![in_bin()], ..Default::default() };
    for _ in 0..40 {
        let attribute = AttributeProto { g: Some(graph), ..Default::default() };
        let node = NodeProto { attribute: vec![attribute], ..Default::default() };
        graph = GraphProto { node: vec![node], ..Default::default() };
    }
    assert_eq!(files(&model(graph).encode_to_vec()), Err(Malformed));
}
