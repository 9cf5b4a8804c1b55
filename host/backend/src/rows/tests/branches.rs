//! Branches, loops and functions of the file.

use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::{AttributeProto, FunctionProto, ModelProto, OperatorSetIdProto};

use super::analyse;
use super::builder::model;
use super::proven;

/// `text` with branches for its node `If`.
fn with_branches(text: &str, yes: &str, no: &str) -> ModelProto {
    let mut model_with = model(text);
    let graph = model_with.graph.as_mut().unwrap();
    let node = graph.node.iter_mut().find(|node| node.op_type == "If").unwrap();
    for (name, branch) in [("then_branch", yes), ("else_branch", no)] {
        node.attribute.push(AttributeProto {
            name: name.into(),
            g: model(branch).graph,
            r#type: AttributeType::Graph as i32,
            ..Default::default()
        });
    }
    model_with
}

fn why(model: &ModelProto) -> String {
    analyse(model).unwrap_err().to_string()
}

#[test]
fn a_branch_that_the_rows_do_not_choose_is_followed() {
    let free = "in x [N,T]; s = Shape(x) start=1; k i {5}; c = Greater(s, k); y = If(c); out y";
    let (relu, tanh) = ("a = Relu(x); out a", "b = Tanh(x); out b");
    assert_eq!(analyse(&with_branches(free, relu, tanh)), Ok(()));
    let softmax = "b = Softmax(x) axis=0; out b";
    assert!(why(&with_branches(free, relu, softmax)).contains("node `b` (Softmax)"));
    let different = "b = Transpose(x); out b";
    assert!(why(&with_branches(free, relu, different)).contains("in different ways"));
    // Only one of them ever runs.
    let known_rank = "in x [N,T]; c i 1; y = If(c); out y";
    assert_eq!(analyse(&with_branches(known_rank, relu, softmax)), Ok(()));
}

#[test]
fn rows_choose_no_branch() {
    let chosen = "the rows decide which of its branches runs";
    let (relu, tanh) = ("a = Relu(x); out a", "b = Tanh(x); out b");
    let values = "opset 17; in x [N,3]; m = ReduceMax(x) axes=[1]; k f []; c = Greater(m, k); y = If(c); out y";
    assert!(why(&with_branches(values, relu, tanh)).contains(chosen));
    let count = "in x [N,3]; s = Shape(x) end=1; k i {5}; c = Greater(s, k); y = If(c); out y";
    assert!(why(&with_branches(count, relu, tanh)).contains(chosen));
}

#[test]
fn loops_and_sequences_are_not_followed() {
    for text in [
        "in x [N,3]; y = Scan(x) num_scan_inputs=1; out y",
        "in x [N,3]; n i 3; y = Loop(n, , x); out y",
    ] {
        assert!(why(&model(text)).contains("loops are not followed"), "{text}");
    }
    // Older exporters write the numbers up to a size so.
    proven(
        "in x [N,T]; s = Shape(x) start=1; o = ConstantOfShape(s); z = NonZero(o); a i {0}
            r = Squeeze(z, a); e f [99,1]; p = Gather(e, r); y = MatMul(x, p); out y",
    );
    let sequence = "in x [N,3]; s = SplitToSequence(x); k i 0; y = SequenceAt(s, k); out y";
    assert!(why(&model(sequence)).contains("sequences are not followed"));
    assert!(why(&model("in x [N,3]; y = RandomNormalLike(x); out y")).contains("random"));
    let noise = "in x [N,3]; r = RandomNormal() shape=[1,3]; y = Add(x, r); out y";
    assert!(why(&model(noise)).contains("its results are random"));
}

#[test]
fn functions_of_the_file_are_followed() {
    let mut body = model("k = Softmax(v); r = Relu(k); out r").graph.unwrap();
    body.node[0].attribute.push(AttributeProto {
        name: "axis".into(),
        ref_attr_name: "over".into(),
        ..Default::default()
    });
    let function = FunctionProto {
        name: Some("f".into()),
        domain: Some("own".into()),
        input: vec!["v".into()],
        output: vec!["r".into()],
        attribute: vec!["over".into()],
        node: body.node,
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: 18 }],
        ..Default::default()
    };
    let with = |text: &str| ModelProto { functions: vec![function.clone()], ..model(text) };
    assert_eq!(analyse(&with("in x [N,3]; y = own.f(x) over=1; out y")), Ok(()));
    let over_rows = why(&with("in x [N,3]; y = own.f(x) over=0; out y"));
    assert!(over_rows.contains("node `k` (Softmax): it normalises over the rows"), "{over_rows}");
    let default = why(&with("in x [N,3]; y = own.f(x); out y"));
    assert!(default.contains("its attribute `axis` is not clear"), "{default}");
    let older = why(&with("opset 17; in x [N,3]; y = own.f(x) over=1; out y"));
    assert!(older.contains("its function has another version of"), "{older}");
    let mut twice = with("in x [N,3]; y = own.f(x) over=1; out y");
    twice.functions.push(function);
    assert!(why(&twice).contains("the operator is defined twice"));
}
