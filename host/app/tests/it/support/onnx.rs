//! ONNX files written field by field: the fields of the format that the tests need.

use super::protobuf::Message;

const FLOAT: i64 = 1;
const INT64: i64 = 7;
const BOOL: i64 = 9;

/// `message` with each of `messages` in the same field.
fn with_all(message: Message, field: u64, messages: impl IntoIterator<Item = Message>) -> Message {
    messages.into_iter().fold(message, |whole, message| whole.message(field, message))
}

/// The value of an attribute.
pub(crate) enum Set<'a> {
    Int(i64),
    Ints(&'a [i64]),
    Text(&'a str),
}

/// A graph: of a model, of a loop or of a branch.
#[derive(Clone, Default)]
pub(crate) struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
}

impl Graph {
    pub(crate) fn node(mut self, operator: &str, inputs: &[&str], outputs: &[&str]) -> Self {
        self.nodes.push(node(operator, inputs, outputs));
        self
    }

    /// Add a node with attributes that are whole numbers, lists of them or texts.
    pub(crate) fn node_set(
        mut self,
        operator: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: &[(&str, Set<'_>)],
    ) -> Self {
        let attributes = attributes.iter().map(|(name, value)| {
            let attribute = Message::new().text(1, name);
            match value {
                Set::Int(value) => attribute.int(3, *value).int(20, 2),
                Set::Ints(values) => values
                    .iter()
                    .fold(attribute, |attribute, value| attribute.int(8, *value))
                    .int(20, 7),
                Set::Text(text) => attribute.text(4, text).int(20, 3),
            }
        });
        self.nodes.push(with_all(node(operator, inputs, outputs), 5, attributes));
        self
    }

    /// Add a node that runs `body` for each row of its last input.
    pub(crate) fn scan(self, inputs: &[&str], outputs: &[&str], body: Self) -> Self {
        let body = Message::new().text(1, "body").message(6, body.message()).int(20, 5);
        let node = node("Scan", inputs, outputs).message(5, body);
        self.node_with(node, "num_scan_inputs", 1)
    }

    /// Add a constant of fractions. It is a scalar if `dims` is empty.
    pub(crate) fn fractions(mut self, name: &str, dims: &[i64], values: &[f32]) -> Self {
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let tensor = dims.iter().fold(Message::new(), |tensor, dim| tensor.int(1, *dim));
        self.constants.push(tensor.int(2, FLOAT).text(8, name).bytes(9, &raw));
        self
    }

    /// Add a node with an attribute that is a whole number.
    fn node_with(mut self, node: Message, name: &str, value: i64) -> Self {
        let attribute = Message::new().text(1, name).int(3, value).int(20, 2);
        self.nodes.push(node.message(5, attribute));
        self
    }

    /// Add a loop from `x` to `y`. It runs `body` as many times as the value of `turns`.
    fn repeat(mut self, turns: &str, body: Self) -> Self {
        let body = Message::new().text(1, "body").message(6, body.message()).int(20, 5);
        self.nodes.push(node("Loop", &[turns, "", "x"], &["y"]).message(5, body));
        self
    }

    /// Add a node that runs one of two graphs for `y`: the first one if `which` is true.
    pub(crate) fn either(mut self, which: &str, graphs: [Self; 2]) -> Self {
        let branches = ["then_branch", "else_branch"].into_iter().zip(graphs);
        let branches = branches.map(|(name, graph)| {
            Message::new().text(1, name).message(6, graph.message()).int(20, 5)
        });
        self.nodes.push(with_all(node("If", &[which], &["y"]), 5, branches));
        self
    }

    /// Add a constant of whole numbers. It is a scalar if `dims` is empty.
    pub(crate) fn constant(mut self, name: &str, dims: &[i64], values: &[i64]) -> Self {
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let tensor = dims.iter().fold(Message::new(), |tensor, dim| tensor.int(1, *dim));
        self.constants.push(tensor.int(2, INT64).text(8, name).bytes(9, &raw));
        self
    }

    /// Add a constant of floats whose data is in another file, of which these entries say more.
    fn in_file(mut self, name: &str, dims: &[i64], entries: &[(&str, &str)]) -> Self {
        let tensor = dims.iter().fold(Message::new(), |tensor, dim| tensor.int(1, *dim));
        let tensor = tensor.int(2, FLOAT).text(8, name).int(14, 1);
        let entry = |(key, value): &(&str, &str)| Message::new().text(1, key).text(2, value);
        self.constants.push(with_all(tensor, 13, entries.iter().map(entry)));
        self
    }

    /// Add an input of floats that has a default.
    fn floats_by_default(self, name: &str, values: &[f32]) -> Self {
        let dims = [values.len() as i64];
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let tensor = Message::new().int(1, dims[0]).int(2, FLOAT).text(8, name).bytes(9, &raw);
        let mut inputs = self.floats_in(name, &dims);
        inputs.constants.push(tensor);
        inputs
    }

    /// An input or output. A dimension of -1 is open.
    fn value(name: &str, element: i64, dims: &[i64]) -> Message {
        let dims = dims.iter().enumerate().map(|(at, dim)| match *dim {
            -1 => Message::new().text(2, &format!("{name}{at}")),
            size => Message::new().int(1, size),
        });
        Self::value_of(name, element, dims)
    }

    fn value_of(name: &str, element: i64, dims: impl Iterator<Item = Message>) -> Message {
        let shape = with_all(Message::new(), 1, dims);
        let tensor = Message::new().int(1, element).message(2, shape);
        Message::new().text(1, name).message(2, Message::new().message(1, tensor))
    }

    pub(crate) fn floats_in(mut self, name: &str, dims: &[i64]) -> Self {
        self.inputs.push(Self::value(name, FLOAT, dims));
        self
    }

    pub(crate) fn floats_out(mut self, name: &str, dims: &[i64]) -> Self {
        self.outputs.push(Self::value(name, FLOAT, dims));
        self
    }

    pub(crate) fn numbers_out(mut self, name: &str, dims: &[i64]) -> Self {
        self.outputs.push(Self::value(name, INT64, dims));
        self
    }

    /// The file of a model.
    pub(crate) fn model(self) -> Vec<u8> {
        self.file(IR_VERSION)
    }

    pub(crate) fn numbers_in(mut self, name: &str, dims: &[i64]) -> Self {
        self.inputs.push(Self::value(name, INT64, dims));
        self
    }

    /// Add an input of whole numbers whose open dimensions have these names.
    pub(crate) fn numbers_named(mut self, name: &str, dims: &[&str]) -> Self {
        let dims = dims.iter().map(|symbol| Message::new().text(2, symbol));
        self.inputs.push(Self::value_of(name, INT64, dims));
        self
    }

    fn message(self) -> Message {
        let Self { nodes, constants, inputs, outputs } = self;
        let graph = with_all(Message::new(), 1, nodes).text(2, "graph");
        let graph = with_all(graph, 5, constants);
        with_all(with_all(graph, 11, inputs), 12, outputs)
    }

    /// The file, in this version of the format.
    fn file(self, ir_version: i64) -> Vec<u8> {
        let opset = Message::new().text(1, "").int(2, 17);
        Message::new().int(1, ir_version).message(7, self.message()).message(8, opset).into_bytes()
    }
}

fn node(operator: &str, inputs: &[&str], outputs: &[&str]) -> Message {
    let node = inputs.iter().fold(Message::new(), |node, name| node.text(1, name));
    outputs.iter().fold(node, |node, name| node.text(2, name)).text(4, operator)
}

/// An IR version that every ONNX Runtime of the tests reads.
const IR_VERSION: i64 = 8;

/// `y = x + x`, in a version of the format that ONNX Runtime does not know yet.
pub(crate) fn of_the_future() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 4]).floats_out("y", &[-1, 4]);
    graph.node("Add", &["x", "x"], &["y"]).file(99)
}

/// `y = x + x` for rows of this many values.
pub(crate) fn doubling(values: i64) -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, values]).floats_out("y", &[-1, values]);
    graph.node("Add", &["x", "x"], &["y"]).file(IR_VERSION)
}

/// `y = x + x`, in a file of at least so many bytes, which differ with `seed`.
pub(crate) fn large(bytes: usize, seed: i64) -> Vec<u8> {
    let value = |at: i64| at.wrapping_mul(0x1234_5678_9abc).wrapping_add(seed);
    let values: Vec<_> = (0..bytes as i64 / 8).map(value).collect();
    let graph = Graph::default().floats_in("x", &[-1, 4]).floats_out("y", &[-1, 4]);
    let graph = graph.constant("ballast", &[values.len() as i64], &values);
    graph.node("Add", &["x", "x"], &["y"]).file(IR_VERSION)
}

/// `y` is the square of `x`, for single rows: the graph fails on more, because it multiplies
/// matrices.
pub(crate) fn single_rows() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 1]).floats_out("y", &[-1, 1]);
    graph.node("MatMul", &["x", "x"], &["y"]).file(IR_VERSION)
}

/// `y = x + x` for exactly two rows of three values.
pub(crate) fn fixed_rows() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[2, 3]).floats_out("y", &[2, 3]);
    graph.node("Add", &["x", "x"], &["y"]).file(IR_VERSION)
}

/// A model for the ranker's plugins. The score of a row of 32 values is their sum if `kind` is 0
/// or 1, which are different files, and otherwise twice their sum.
pub(crate) fn row_sums(kind: usize) -> Vec<u8> {
    let graph = Graph::default().floats_in("input", &[-1, 32]).floats_out("output", &[-1, 1]);
    let graph = graph.constant("axes", &[1], &[1]).node("ReduceSum", &["input", "axes"], &["sum"]);
    let graph = match kind {
        0 => graph.node("Identity", &["sum"], &["same"]).node("Identity", &["same"], &["output"]),
        1 => graph.node("Identity", &["sum"], &["output"]),
        _ => graph.node("Add", &["sum", "sum"], &["output"]),
    };
    graph.file(IR_VERSION)
}

/// The body of a loop: it doubles the value.
fn body() -> Graph {
    let mut graph = Graph::default();
    graph.inputs.push(Graph::value("turn", INT64, &[]));
    graph.inputs.push(Graph::value("goes_on", BOOL, &[]));
    graph.outputs.push(Graph::value("goes_on_then", BOOL, &[]));
    let graph = graph.floats_in("before", &[-1, 1]).floats_out("after", &[-1, 1]);
    let graph = graph.node("Identity", &["goes_on"], &["goes_on_then"]);
    graph.node("Add", &["before", "before"], &["after"])
}

/// `y` is `x`, doubled as many times as the largest value of `turns`.
pub(crate) fn turns_from_input() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 1]).numbers_in("turns", &[-1, 1]);
    let graph = graph.floats_out("y", &[-1, 1]);
    let largest = node("ReduceMax", &["turns"], &["most"]);
    let graph = graph.node_with(largest, "keepdims", 0);
    graph.repeat("most", body()).file(IR_VERSION)
}

/// `y` is `x`, doubled 2^62 times.
pub(crate) fn endless() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 1]).floats_out("y", &[-1, 1]);
    let graph = graph.constant("turns", &[], &[1 << 62]);
    graph.repeat("turns", body()).file(IR_VERSION)
}

/// Adds the largest of 32 GiB of zeros to `x`. The zeros do not depend on the input.
pub(crate) fn constant_bomb() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 1]).floats_out("y", &[-1, 1]);
    let graph = graph.constant("shape", &[1], &[8 << 30]);
    let graph = graph.node("ConstantOfShape", &["shape"], &["zeros"]);
    let most = node("ReduceMax", &["zeros"], &["zero"]);
    let graph = graph.node_with(most, "keepdims", 0);
    graph.node("Add", &["x", "zero"], &["y"]).file(IR_VERSION)
}

/// Expands each row to 32 GiB when it runs.
pub(crate) fn expanding_bomb() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 1]).floats_out("y", &[-1, -1]);
    let graph = graph.constant("shape", &[2], &[1, 8 << 30]);
    graph.node("Expand", &["x", "shape"], &["y"]).file(IR_VERSION)
}

/// Repeats `x` in as many columns as the largest value of `columns`, and takes the largest of them.
pub(crate) fn columns_from_input() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 1]).numbers_in("columns", &[-1, 1]);
    let graph = graph.floats_out("y", &[-1, 1]).constant("one", &[1], &[1]);
    let largest = node("ReduceMax", &["columns"], &["most"]);
    let graph = graph.node_with(largest, "keepdims", 0);
    let graph = graph.constant("flat", &[1], &[1]).node("Reshape", &["most", "flat"], &["length"]);
    let pair = node("Concat", &["one", "length"], &["shape"]);
    let graph = graph.node_with(pair, "axis", 0).node("Expand", &["x", "shape"], &["wide"]);
    graph.node("ReduceMax", &["wide"], &["y"]).file(IR_VERSION)
}

/// Multiplies its one row of floats with itself to a matrix, which takes four bytes times the
/// square of `columns`, and takes the largest element.
pub(crate) fn outer_product(columns: i64) -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, columns]).floats_out("y", &[-1, 1]);
    let turned = graph.node("Transpose", &["x"], &["column"]);
    let product = turned.node("MatMul", &["column", "x"], &["square"]);
    product.node("ReduceMax", &["square"], &["y"]).file(IR_VERSION)
}

/// `y = x` if `x` is zero; otherwise it adds a constant, the largest element of products of large
/// matrices. Loading takes minutes if a backend computes constants in advance, and no time
/// otherwise. The matrices are so large that a fast machine reaches a limit of time before that of
/// memory, 2 GiB.
pub(crate) fn slow_to_optimise() -> Vec<u8> {
    const SIDE: i64 = 6144;
    const PRODUCTS: usize = 100;
    let graph = Graph::default().floats_in("x", &[-1, 1]).floats_out("y", &[-1, 1]);
    let graph = graph.node_with(node("ReduceMax", &["x"], &["most"]), "keepdims", 0);
    let graph = graph.node_with(node("Cast", &["most"], &["is_over"]), "to", BOOL);
    let mut slow = Graph::default().floats_out("sum", &[-1, 1]);
    slow = slow.constant("shape", &[2], &[SIDE, SIDE]);
    slow = slow.node("ConstantOfShape", &["shape"], &["product0"]);
    for index in 1..=PRODUCTS {
        let [before, product] = [index - 1, index].map(|index| format!("product{index}"));
        slow = slow.node("MatMul", &[&before, "product0"], &[&product]);
    }
    let largest = node("ReduceMax", &[&format!("product{PRODUCTS}")], &["largest"]);
    slow = slow.node_with(largest, "keepdims", 0).node("Add", &["x", "largest"], &["sum"]);
    let same = Graph::default().floats_out("same", &[-1, 1]).node("Identity", &["x"], &["same"]);
    graph.either("is_over", [slow, same]).file(IR_VERSION)
}

/// `y` is `x`, doubled, of any number of values.
pub(crate) fn doubled() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1]).floats_out("y", &[-1]);
    graph.node("Add", &["x", "x"], &["y"]).file(IR_VERSION)
}

/// `y` has the values of `a`, and then those of `b`.
pub(crate) fn joined() -> Vec<u8> {
    let graph = Graph::default().floats_in("a", &[-1]).floats_in("b", &[-1]);
    let joined = graph.floats_out("y", &[-1]);
    joined.node_set("Concat", &["a", "b"], &["y"], &[("axis", Set::Int(0))]).file(IR_VERSION)
}

/// `y = x`, and `rate_out = rate`, which is a scalar.
pub(crate) fn with_scalar() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1]).numbers_in("rate", &[]);
    let graph = graph.floats_out("y", &[-1]).node("Identity", &["x"], &["y"]);
    let mut graph = graph.node("Identity", &["rate"], &["rate_out"]);
    graph.outputs.push(Graph::value("rate_out", INT64, &[]));
    graph.file(IR_VERSION)
}

/// `y = x` for images of three channels.
pub(crate) fn pictures() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 3, 8, 8]).floats_out("y", &[-1, 3, 8, 8]);
    graph.node("Identity", &["x"], &["y"]).file(IR_VERSION)
}

/// `y = x * w` for rows of four values. `w` is in another file, of which these entries say more.
pub(crate) fn scaled_by_file(entries: &[(&str, &str)]) -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 4]).floats_out("y", &[-1, 4]);
    graph.in_file("w", &[4], entries).node("Mul", &["x", "w"], &["y"]).file(IR_VERSION)
}

/// `y` is the row `x` of a table of so many rows of 256 floats in the file `table`.
pub(crate) fn table_in_file(rows: i64) -> Vec<u8> {
    let graph = Graph::default().numbers_in("x", &[-1]).floats_out("y", &[-1, 256]);
    let graph = graph.in_file("table", &[rows, 256], &[("location", "table")]);
    graph.node("Gather", &["table", "x"], &["y"]).file(IR_VERSION)
}

/// `y = x * scale + offset` for rows of two values. `scale` is 2 and `offset` 1, if they are not
/// given.
pub(crate) fn with_defaults() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 2]).floats_out("y", &[-1, 2]);
    let graph = graph.floats_by_default("scale", &[2.0]).floats_by_default("offset", &[1.0]);
    let graph = graph.node("Mul", &["x", "scale"], &["scaled"]);
    graph.node("Add", &["scaled", "offset"], &["y"]).file(IR_VERSION)
}

/// The softmax of each row of four values.
pub(crate) fn softmax() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 4]).floats_out("y", &[-1, 4]);
    graph.node("Softmax", &["x"], &["y"]).file(IR_VERSION)
}

/// `y` is the element `x` of a table of three, times `scale`, which is 1 by default.
pub(crate) fn look_up_scaled() -> Vec<u8> {
    let graph = Graph::default().numbers_in("x", &[-1]).floats_out("y", &[-1]);
    let graph = graph.fractions("table", &[3], &[1.0, 2.0, 3.0]).floats_by_default("scale", &[1.0]);
    let graph = graph.node("Gather", &["table", "x"], &["found"]);
    graph.node("Mul", &["found", "scale"], &["y"]).file(IR_VERSION)
}

/// A convolution of 3x3 without padding over gray pictures of any size.
pub(crate) fn convolution() -> Vec<u8> {
    let dims = [-1, 1, -1, -1];
    let graph = Graph::default().floats_in("x", &dims).floats_out("y", &dims);
    let graph = graph.fractions("kernel", &[1, 1, 3, 3], &[0.5; 9]);
    graph.node("Conv", &["x", "kernel"], &["y"]).file(IR_VERSION)
}

/// `y = a + b` for two inputs whose dimensions have the same two names.
pub(crate) fn with_equal_dims(names: [&str; 2]) -> Vec<u8> {
    let mut graph = Graph::default().floats_out("y", &[-1, -1]);
    for name in ["a", "b"] {
        let dims = names.into_iter().map(|symbol| Message::new().text(2, symbol));
        graph.inputs.push(Graph::value_of(name, FLOAT, dims));
    }
    graph.node("Add", &["a", "b"], &["y"]).file(IR_VERSION)
}

/// The softmax of rows of two values, which `ZipMap` makes maps of.
pub(crate) fn softmax_as_maps() -> Vec<u8> {
    const OPERATORS: &str = "ai.onnx.ml";
    let classes = [0, 1].into_iter().fold(Message::new(), |classes, class| classes.int(8, class));
    let classes = classes.text(1, "classlabels_int64s").int(20, 7);
    let maps = node("ZipMap", &["scores"], &["maps"]).text(7, OPERATORS).message(5, classes);
    // A sequence of maps from whole numbers to floats.
    let float = Message::new().message(1, Message::new().int(1, FLOAT));
    let map = Message::new().message(5, Message::new().int(1, INT64).message(2, float));
    let maps_type = Message::new().message(4, Message::new().message(1, map));
    let mut graph = Graph::default().floats_in("x", &[-1, 2]);
    graph = graph.node("Softmax", &["x"], &["scores"]);
    graph.nodes.push(maps);
    graph.outputs.push(Message::new().text(1, "maps").message(2, maps_type));
    let opset = Message::new().text(1, OPERATORS).int(2, 1);
    let file = Message::new().bytes(8, &opset.into_bytes()).into_bytes();
    [graph.file(IR_VERSION), file].concat()
}
