//! Models that never end, fill the memory or have too many parts. All but `many_nodes` are a few
//! hundred bytes long. Each has one input `x` and one output `y`. `add` is an honest one.

use super::protobuf::Message;

/// ONNX's element types.
const FLOAT: i64 = 1;
const INT64: i64 = 7;
const BOOL: i64 = 9;

const IR_VERSION: i64 = 8;
const OPSET: i64 = 17;

/// A loop of 2^62 rounds over `[rows, 1]` floats.
pub fn endless_loop() -> Vec<u8> {
    let body = Message::new()
        .message(1, node("Identity", &["going"], "go_on"))
        .message(1, node("Identity", &["carried"], "carried_on"))
        .text(2, "body")
        .message(11, value("round", INT64, &[]))
        .message(11, value("going", BOOL, &[]))
        .message(11, value("carried", FLOAT, &[Dim::Any, Dim::Is(1)]))
        .message(12, value("go_on", BOOL, &[]))
        .message(12, value("carried_on", FLOAT, &[Dim::Any, Dim::Is(1)]));
    // Attribute `body`, a graph.
    let body = Message::new().text(1, "body").message(6, body).int(20, 5);
    let looped = node("Loop", &["rounds", "always", "x"], "y").message(5, body);
    let rounds = tensor("rounds", INT64, &[], &(1_i64 << 62).to_le_bytes());
    model(&[looped], &[rounds, tensor("always", BOOL, &[], &[1])], FLOAT)
}

/// Expands each float of `[rows, 1]` to 8 GB.
pub fn expand() -> Vec<u8> {
    let shape = tensor("shape", INT64, &[2], [1_i64, 1 << 31].map(i64::to_le_bytes).as_flattened());
    model(&[node("Expand", &["x", "shape"], "y")], &[shape], FLOAT)
}

/// As many floats as the request says: its input is the shape of its output.
pub fn constant_of_shape() -> Vec<u8> {
    let flat = tensor("flat", INT64, &[1], &(-1_i64).to_le_bytes());
    let nodes =
        [node("Reshape", &["x", "flat"], "shape"), node("ConstantOfShape", &["shape"], "y")];
    model(&nodes, &[flat], INT64)
}

/// 100,000 operators, one after the other.
pub fn many_nodes() -> Vec<u8> {
    const NODES: usize = 100_000;
    let step = |index: usize| {
        let name = |index: usize| match index {
            0 => "x".to_owned(),
            NODES => "y".to_owned(),
            index => format!("n{index}"),
        };
        node("Sin", &[&name(index)], &name(index + 1))
    };
    model(&(0..NODES).map(step).collect::<Vec<_>>(), &[], FLOAT)
}

/// The shares of each of `[rows, places]` floats in the sum of its row. So no row may be padded.
pub fn shares() -> Vec<u8> {
    let node = node("Softmax", &["x"], "y");
    let dims = [Dim::Any, Dim::Other];
    graph(&[node], &[], value("x", FLOAT, &dims), value("y", FLOAT, &dims))
}

/// Adds `number` to each of `[rows, 1]` floats: an honest model, whose answers show which one it
/// is.
pub fn add(number: f32) -> Vec<u8> {
    let number = tensor("number", FLOAT, &[1], &number.to_le_bytes());
    model(&[node("Add", &["x", "number"], "y")], &[number], FLOAT)
}

/// `onnx` made different from all others by a note in it.
pub fn distinct(onnx: &[u8], number: u64) -> Vec<u8> {
    const DOC_STRING: u64 = 6;
    let note = Message::new().text(DOC_STRING, &number.to_string());
    [onnx, &note.into_bytes()].concat()
}

enum Dim {
    Any,
    /// Any size that need not be that of [`Dim::Any`].
    Other,
    Is(i64),
}

fn model(nodes: &[Message], initializers: &[Message], input: i64) -> Vec<u8> {
    let input = value("x", input, &[Dim::Any, Dim::Is(1)]);
    graph(nodes, initializers, input, value("y", FLOAT, &[Dim::Any, Dim::Any]))
}

fn graph(nodes: &[Message], initializers: &[Message], input: Message, output: Message) -> Vec<u8> {
    let graph = nodes.iter().fold(Message::new(), |graph, node| graph.message(1, node.clone()));
    let graph = graph.text(2, "graph");
    let graph =
        initializers.iter().fold(graph, |graph, initializer| graph.message(5, initializer.clone()));
    let graph = graph.message(11, input).message(12, output);
    let opset = Message::new().text(1, "").int(2, OPSET);
    Message::new().int(1, IR_VERSION).message(7, graph).message(8, opset).into_bytes()
}

fn node(operator: &str, inputs: &[&str], output: &str) -> Message {
    let node = inputs.iter().fold(Message::new(), |node, input| node.text(1, input));
    node.text(2, output).text(4, operator)
}

fn tensor(name: &str, dtype: i64, dims: &[i64], data: &[u8]) -> Message {
    let tensor = dims.iter().fold(Message::new(), |tensor, dim| tensor.int(1, *dim));
    tensor.int(2, dtype).text(8, name).bytes(9, data)
}

/// A graph's input or output.
fn value(name: &str, dtype: i64, dims: &[Dim]) -> Message {
    let shape = dims.iter().fold(Message::new(), |shape, dim| {
        let dim = match dim {
            Dim::Any => Message::new().text(2, "n"),
            Dim::Other => Message::new().text(2, "m"),
            Dim::Is(size) => Message::new().int(1, *size),
        };
        shape.message(1, dim)
    });
    let tensor_type = Message::new().int(1, dtype).message(2, shape);
    Message::new().text(1, name).message(2, Message::new().message(1, tensor_type))
}
