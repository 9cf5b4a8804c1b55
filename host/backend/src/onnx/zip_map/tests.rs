use prost::Message;
use tract_onnx::pb::{AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto};

use super::*;

fn node(operator: &str, domain: &str, [input, output]: [&str; 2]) -> NodeProto {
    let (input, output) = (vec![input.into()], vec![output.into()]);
    let (op_type, domain) = (operator.into(), domain.into());
    let classes = AttributeProto { ints: vec![3, -1], ..Default::default() };
    NodeProto { input, output, op_type, domain, attribute: vec![classes], ..Default::default() }
}

fn zip_map() -> NodeProto {
    node("ZipMap", "ai.onnx.ml", ["scores", "maps"])
}

fn model(nodes: Vec<NodeProto>, outputs: &[&str]) -> ModelProto {
    let output = |name: &&str| ValueInfoProto { name: (*name).into(), ..Default::default() };
    let output = outputs.iter().map(output).collect();
    let graph = GraphProto { node: nodes, output, ..Default::default() };
    let version = "after the graph".into();
    ModelProto { graph: Some(graph), doc_string: version, ..Default::default() }
}

fn cut_of(model: &ModelProto) -> Option<(ModelProto, Vec<String>)> {
    let Cut { model, warnings } = cut(&model.encode_to_vec()).unwrap()?;
    Some((ModelProto::decode(&model[..]).unwrap(), warnings))
}

#[test]
fn the_output_gets_the_probabilities() {
    let softmax = node("Softmax", "", ["x", "scores"]);
    let whole = model(vec![softmax.clone(), zip_map()], &["label", "maps"]);
    let (changed, warnings) = cut_of(&whole).unwrap();
    assert_eq!(changed.doc_string, whole.doc_string);
    // It had no standard operator.
    assert_eq!(changed.opset_import.len(), 1);
    let graph = changed.graph.unwrap();
    let identity = NodeProto { attribute: Vec::new(), ..node("Identity", "", ["scores", "maps"]) };
    assert_eq!(graph.node, [softmax, identity]);
    let names: Vec<_> = graph.output.iter().map(|output| &*output.name).collect();
    assert_eq!(names, ["label", "maps"]);
    assert!(graph.output[0].r#type.is_none() && graph.output[1].r#type.is_some());
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    for named in ["\"maps\"", "(3, -1)", "{'zipmap': False}"] {
        assert!(warning.contains(named), "{warning}");
    }
}

#[test]
fn other_nodes_stay() {
    let used = node("Next", "", ["maps", "y"]);
    for (nodes, outputs) in [
        (vec![zip_map(), used], &["maps"]),
        (vec![zip_map()], &["scores"]),
        (vec![node("ZipMap", "example.test", ["scores", "maps"])], &["maps"]),
        (vec![node("Softmax", "", ["x", "maps"])], &["maps"]),
    ] {
        assert!(cut_of(&model(nodes, outputs)).is_none());
    }
    assert!(cut(b"no model").is_err());
}
