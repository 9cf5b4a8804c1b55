//! Files that are made to keep a reader busy, or to end it.

use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    ValueInfoProto,
};

use super::super::analyse;
use super::builder::model;

fn why(model: &ModelProto) -> String {
    analyse(model).unwrap_err().to_string()
}

fn call(domain: &str, operator: &str, input: &str, output: &str) -> NodeProto {
    NodeProto {
        input: vec![input.into()],
        output: vec![output.into()],
        domain: domain.into(),
        op_type: operator.into(),
        ..Default::default()
    }
}

/// A function that calls `others`, one after the other.
fn function(name: &str, others: &[&str]) -> FunctionProto {
    let call = |(at, other): (usize, &&str)| {
        call("own", other, &format!("v{at}"), &format!("v{}", at + 1))
    };
    FunctionProto {
        name: Some(name.into()),
        domain: Some("own".into()),
        input: vec!["v0".into()],
        output: vec![format!("v{}", others.len())],
        node: others.iter().enumerate().map(call).collect(),
        opset_import: vec![OperatorSetIdProto { domain: "own".into(), version: 1 }],
        ..Default::default()
    }
}

fn with_functions(functions: Vec<FunctionProto>) -> ModelProto {
    ModelProto { functions, ..model("in x [N,3]; y = own.f0(x); out y") }
}

#[test]
fn functions_that_call_themselves_end() {
    let circle = with_functions(vec![function("f0", &["f1"]), function("f1", &["f0"])]);
    assert!(why(&circle).contains("too deep"), "{}", why(&circle));
    let names: Vec<String> = (0..20).map(|at| format!("f{at}")).collect();
    let doubling = names.windows(2).map(|pair| function(&pair[0], &[&pair[1][..]; 40]));
    let last = function("f19", &[]);
    let doubling = with_functions(doubling.chain([last]).collect());
    assert!(why(&doubling).contains("too large"), "{}", why(&doubling));
}

#[test]
fn very_many_nodes_end() {
    let mut large = model("in x [N,3]; out y");
    let graph = large.graph.as_mut().unwrap();
    graph.node.push(call("", "Relu", "x", "v0"));
    let node = |at: usize| call("", "Relu", &format!("v{at}"), &format!("v{}", at + 1));
    graph.node.extend((0..400_000).map(node));
    graph.node.push(call("", "Relu", "v400000", "y"));
    assert!(why(&large).contains("too large"), "{}", why(&large));
}

#[test]
fn graphs_in_graphs_end() {
    let named = |name: String| ValueInfoProto { name, ..Default::default() };
    let mut inner = GraphProto { output: vec![named("x".into())], ..Default::default() };
    for depth in 0..200 {
        let graph = |name: &str, graph| AttributeProto {
            name: name.into(),
            g: Some(graph),
            r#type: AttributeType::Graph as i32,
            ..Default::default()
        };
        let name = format!("y{depth}");
        let mut node = call("", "If", "c", &name);
        node.attribute =
            vec![graph("then_branch", inner), graph("else_branch", Default::default())];
        inner = GraphProto { node: vec![node], output: vec![named(name)], ..Default::default() };
    }
    let mut deep = model("c i 1; in x [N,3]; out y199");
    deep.graph.as_mut().unwrap().node = inner.node;
    assert!(why(&deep).contains("too deep"), "{}", why(&deep));
}

#[test]
fn products_of_dimensions_do_not_grow_without_end() {
    let mut text = "in x [N,T]; s i {0,-1,1}; v0 = Reshape(x, s)".to_owned();
    for at in 0..60 {
        text += &format!("; o{at} = Transpose(v{at}) perm=[0,2,1]; m{at} = MatMul(v{at}, o{at})");
        text += &format!("; v{} = Reshape(m{at}, s)", at + 1);
    }
    super::proven(&(text + "; out v60"));
}

#[test]
fn sizes_at_the_ends_of_their_types_do_no_harm() {
    for size in ["9223372036854775807", "-9223372036854775808", "-2"] {
        for text in [
            "in x [N,3]; s i {SIZE,3}; y = Reshape(x, s); out y",
            "in x [N,3]; s i {SIZE}; y = Expand(x, s); out y",
            "in x [N,3]; s i {SIZE}; y = ConstantOfShape(s); z = Concat(x, y) axis=1; out z",
            "in x [N,3]; s i {1,SIZE}; y = Tile(x, s); z = Tile(y, s); w = Flatten(z); v = Relu(q); out v",
            "in x [N,3]; s i {SIZE}; y = Unsqueeze(x, s); out y",
            "in x [N,3]; s i {SIZE,0,SIZE,SIZE}; y = Pad(x, s); out y",
            "in x [N,3]; s i SIZE; z i 0; o i 1; y = Range(z, s, o); w = Add(x, y); out w",
            "in x [N,3]; s i {SIZE}; y = Slice(x, s, s, s); out y",
            "in x [N,3]; y = Softmax(x) axis=SIZE; out y",
            "in x [N,3]; w f [SIZE,SIZE,SIZE]; y = Conv(x, w) strides=[SIZE]; out y",
            "in x [N,3,9]; w f [3,3,3]; y = Conv(x, w) strides=[SIZE] pads=[SIZE,SIZE]; z = Relu(q); out z",
            "in x [N,3,9]; y = MaxPool(x) kernel_shape=[SIZE] dilations=[SIZE]; z = Relu(q); out z",
            "in x [N,3]; y = Shape(x) start=SIZE end=SIZE; out y",
            "in x [N,3]; y, z = Split(x) axis=1 num_outputs=SIZE; w = Relu(q); out w",
            "in x [N,4,2,2]; y = DepthToSpace(x) blocksize=SIZE; out y",
            "in x [N,3]; s i {SIZE}; t = Mul(s, s); u = Add(t, s); v = Neg(s); w = Div(s, v); out w",
        ] {
            // Some of these are proven, because they fail when they run.
            let _ = analyse(&model(&text.replace("SIZE", size)));
        }
    }
}
