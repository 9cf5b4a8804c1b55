//! ONNX files made by hand: the few fields of the format that the tests need.

const FLOAT: u64 = 1;
const INT64: u64 = 7;
const BOOL: u64 = 9;

/// A message of protobuf's wire format.
#[derive(Clone, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn all(self, field: u64, messages: impl IntoIterator<Item = Self>) -> Self {
        messages.into_iter().fold(self, |own, message| own.bytes(field, &message.0))
    }
}

/// A graph, to be a model's or a loop's.
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

    /// A node with an attribute that is a whole number.
    fn node_with(mut self, node: Message, attribute: (&str, u64)) -> Self {
        let (name, value) = attribute;
        let attribute = Message::default().text(1, name).number(3, value).number(20, 2);
        self.nodes.push(node.all(5, [attribute]));
        self
    }

    /// A loop over `body`, whose turns are the value of `turns`.
    fn repeat(mut self, turns: &str, (carried, result): (&str, &str), body: Self) -> Self {
        let body = Message::default().text(1, "body").all(6, [body.message()]).number(20, 5);
        self.nodes.push(node("Loop", &[turns, "", carried], &[result]).all(5, [body]));
        self
    }

    /// One of two graphs, by the value of `which`.
    fn either(mut self, (which, result): (&str, &str), graphs: [Self; 2]) -> Self {
        let branches = ["then_branch", "else_branch"].into_iter().zip(graphs);
        let branches = branches.map(|(name, graph)| {
            Message::default().text(1, name).all(6, [graph.message()]).number(20, 5)
        });
        self.nodes.push(node("If", &[which], &[result]).all(5, branches));
        self
    }

    /// Whole numbers; a scalar where `dims` is empty.
    pub(crate) fn constant(mut self, name: &str, dims: &[u64], values: &[i64]) -> Self {
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let tensor = dims.iter().fold(Message::default(), |tensor, dim| tensor.number(1, *dim));
        self.constants.push(tensor.number(2, INT64).text(8, name).bytes(9, &raw));
        self
    }

    /// Dimensions of -1 are open.
    fn value(name: &str, element: u64, dims: &[i64]) -> Message {
        let dims = dims.iter().enumerate().map(|(at, dim)| match u64::try_from(*dim) {
            Ok(size) => Message::default().number(1, size),
            Err(_) => Message::default().text(2, &format!("d{at}")),
        });
        let shape = Message::default().all(1, dims);
        let tensor = Message::default().number(1, element).all(2, [shape]);
        Message::default().text(1, name).all(2, [Message::default().all(1, [tensor])])
    }

    pub(crate) fn floats_in(mut self, name: &str, dims: &[i64]) -> Self {
        self.inputs.push(Self::value(name, FLOAT, dims));
        self
    }

    pub(crate) fn floats_out(mut self, name: &str, dims: &[i64]) -> Self {
        self.outputs.push(Self::value(name, FLOAT, dims));
        self
    }

    fn numbers_in(mut self, name: &str, dims: &[i64]) -> Self {
        self.inputs.push(Self::value(name, INT64, dims));
        self
    }

    fn message(self) -> Message {
        let Self { nodes, constants, inputs, outputs } = self;
        let named = Message::default().all(1, nodes).text(2, "graph");
        named.all(5, constants).all(11, inputs).all(12, outputs)
    }

    /// The file, of this version of the format.
    fn file(self, ir_version: u64) -> Vec<u8> {
        let opset = Message::default().text(1, "").number(2, 17);
        Message::default().number(1, ir_version).all(7, [self.message()]).all(8, [opset]).0
    }
}

fn node(operator: &str, inputs: &[&str], outputs: &[&str]) -> Message {
    let node = inputs.iter().fold(Message::default(), |node, name| node.text(1, name));
    outputs.iter().fold(node, |node, name| node.text(2, name)).text(4, operator)
}

/// An IR version that every ONNX Runtime of the tests reads.
const IR_VERSION: u64 = 8;

/// `y = x + x`, in a format that is newer than ONNX Runtime reads.
pub(crate) fn of_the_future() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 4]).floats_out("y", &[-1, 4]);
    graph.node("Add", &["x", "x"], &["y"]).file(99)
}

/// `y = x + x` for rows of so many values.
pub(crate) fn doubling(values: i64) -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, values]).floats_out("y", &[-1, values]);
    graph.node("Add", &["x", "x"], &["y"]).file(IR_VERSION)
}

/// What is added to itself in each turn.
fn body() -> Graph {
    let mut graph = Graph::default();
    graph.inputs.push(Graph::value("turn", INT64, &[]));
    graph.inputs.push(Graph::value("goes_on", BOOL, &[]));
    graph.outputs.push(Graph::value("goes_on_then", BOOL, &[]));
    let graph = graph.floats_in("before", &[-1, 1]).floats_out("after", &[-1, 1]);
    let graph = graph.node("Identity", &["goes_on"], &["goes_on_then"]);
    graph.node("Add", &["before", "before"], &["after"])
}

/// `y` is `x`, doubled as many times as the largest of `turns` says.
pub(crate) fn turns_from_input() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 1]).numbers_in("turns", &[-1, 1]);
    let graph = graph.floats_out("y", &[-1, 1]);
    let largest = node("ReduceMax", &["turns"], &["most"]);
    let graph = graph.node_with(largest, ("keepdims", 0));
    graph.repeat("most", ("x", "y"), body()).file(IR_VERSION)
}

/// `y` is `x`, doubled 2^62 times.
pub(crate) fn endless() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 1]).floats_out("y", &[-1, 1]);
    let graph = graph.constant("turns", &[], &[1 << 62]);
    graph.repeat("turns", ("x", "y"), body()).file(IR_VERSION)
}

/// Asks for 32 GiB of zeros, which do not depend on its input.
pub(crate) fn constant_bomb() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 1]).floats_out("y", &[-1, 1]);
    let graph = graph.constant("shape", &[1], &[8 << 30]);
    let graph = graph.node("ConstantOfShape", &["shape"], &["zeros"]);
    let most = node("ReduceMax", &["zeros"], &["zero"]);
    let graph = graph.node_with(most, ("keepdims", 0));
    graph.node("Add", &["x", "zero"], &["y"]).file(IR_VERSION)
}

/// Spreads each row over 32 GiB when it runs.
pub(crate) fn expanding_bomb() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 1]).floats_out("y", &[-1, -1]);
    let graph = graph.constant("shape", &[2], &[1, 8 << 30]);
    graph.node("Expand", &["x", "shape"], &["y"]).file(IR_VERSION)
}

/// The largest of what `x` is after it was repeated as many times as the largest of `columns` says.
pub(crate) fn columns_from_input() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, 1]).numbers_in("columns", &[-1, 1]);
    let graph = graph.floats_out("y", &[-1, 1]).constant("one", &[1], &[1]);
    let largest = node("ReduceMax", &["columns"], &["most"]);
    let graph = graph.node_with(largest, ("keepdims", 0));
    let graph = graph.constant("flat", &[1], &[1]).node("Reshape", &["most", "flat"], &["length"]);
    let pair = node("Concat", &["one", "length"], &["shape"]);
    let graph = graph.node_with(pair, ("axis", 0)).node("Expand", &["x", "shape"], &["wide"]);
    graph.node("ReduceMax", &["wide"], &["y"]).file(IR_VERSION)
}

/// Squares its one row of so many floats on the way, in memory of as many bytes squared.
pub(crate) fn outer_product(columns: i64) -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, columns]).floats_out("y", &[-1, 1]);
    let turned = graph.node("Transpose", &["x"], &["column"]);
    let product = turned.node("MatMul", &["column", "x"], &["square"]);
    product.node("ReduceMax", &["square"], &["y"]).file(IR_VERSION)
}

/// `y = x`, but for an `x` over zero, where it adds what is the same each time: products of large
/// matrices. Takes minutes to load where constants are worked out beforehand, and no time
/// otherwise.
pub(crate) fn slow_to_optimise() -> Vec<u8> {
    const SIDE: i64 = 2048;
    const PRODUCTS: usize = 400;
    let graph = Graph::default().floats_in("x", &[-1, 1]).floats_out("y", &[-1, 1]);
    let graph = graph.node_with(node("ReduceMax", &["x"], &["most"]), ("keepdims", 0));
    let graph = graph.node_with(node("Cast", &["most"], &["is_over"]), ("to", BOOL));
    let mut slow = Graph::default().floats_out("sum", &[-1, 1]);
    slow = slow.constant("shape", &[2], &[SIDE, SIDE]);
    slow = slow.node("ConstantOfShape", &["shape"], &["product0"]);
    for index in 1..=PRODUCTS {
        let [before, product] = [index - 1, index].map(|index| format!("product{index}"));
        slow = slow.node("MatMul", &[&before, "product0"], &[&product]);
    }
    let largest = node("ReduceMax", &[&format!("product{PRODUCTS}")], &["largest"]);
    slow = slow.node_with(largest, ("keepdims", 0)).node("Add", &["x", "largest"], &["sum"]);
    let same = Graph::default().floats_out("same", &[-1, 1]).node("Identity", &["x"], &["same"]);
    graph.either(("is_over", "y"), [slow, same]).file(IR_VERSION)
}
