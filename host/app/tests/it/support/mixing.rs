//! Models whose rows influence each other, although the first dimensions of all their inputs and
//! outputs are open: what people export when they do not think of batches, and what somebody may
//! upload to see the rows of others.

use super::onnx::Graph;
use super::onnx::Set::{Int, Ints, Text};

/// A model of a row `x` of four fractions.
pub(crate) struct Mixing {
    pub(crate) name: &'static str,
    pub(crate) file: Vec<u8>,
}

const ROW: [i64; 2] = [-1, 4];

/// From `x` to `y`, which have rows of four fractions.
fn rows() -> Graph {
    Graph::default().floats_in("x", &ROW).floats_out("y", &ROW)
}

/// With a constant `axes` that names the rows.
fn over_rows() -> Graph {
    rows().constant("axes", &[1], &[0])
}

/// A statistic over the rows, as `s`.
fn reduced(operator: &str) -> Graph {
    over_rows().node_set(operator, &["x"], &["s"], &[("axes", Ints(&[0]))])
}

/// One operator from `x` to `y` along the rows.
fn along(operator: &str) -> Graph {
    rows().node_set(operator, &["x"], &["y"], &[("axis", Int(0))])
}

/// The rows turned to an image of one line with four channels, as `t`.
fn turned() -> Graph {
    let graph = rows().constant("one", &[1], &[0]);
    let graph = graph.node_set("Transpose", &["x"], &["columns"], &[("perm", Ints(&[1, 0]))]);
    graph.node("Unsqueeze", &["columns", "one"], &["t"])
}

/// `u`, an image of one line, turned back to the rows `y`.
fn back(graph: Graph) -> Graph {
    let graph = graph.node("Squeeze", &["u", "one"], &["flat"]);
    graph.node_set("Transpose", &["flat"], &["y"], &[("perm", Ints(&[1, 0]))])
}

/// A recurrent network whose first dimension is time.
fn recurrent(operator: &str, gates: i64, direction: &str) -> Graph {
    let weights = |seed: i64, columns: i64| -> Vec<f32> {
        let values = 0..4 * gates * columns;
        values.map(|at| ((at * 37 + seed) % 17) as f32 / 17.0 - 0.5).collect()
    };
    let graph = rows().constant("one", &[1], &[1]);
    let graph = graph.fractions("w", &[1, 4 * gates, 4], &weights(1, 4));
    let graph = graph.fractions("r", &[1, 4 * gates, 4], &weights(2, 4));
    let graph = graph.node("Unsqueeze", &["x", "one"], &["steps"]);
    let set = [("hidden_size", Int(4)), ("direction", Text(direction))];
    let graph = graph.node_set(operator, &["steps", "w", "r"], &["out"], &set);
    let graph = graph.constant("ones", &[2], &[1, 2]);
    graph.node("Squeeze", &["out", "ones"], &["y"])
}

/// The number of rows, as `n` of one element, and as the fraction `size`.
fn counted() -> Graph {
    let graph = over_rows().node("Shape", &["x"], &["shape"]);
    let graph = graph.constant("first", &[1], &[0]).constant("second", &[1], &[1]);
    let graph = graph.node("Slice", &["shape", "first", "second"], &["n"]);
    graph.node_set("Cast", &["n"], &["size"], &[("to", Int(1))])
}

/// A matrix of products of all rows, as `m`.
fn products() -> Graph {
    let graph = rows().node_set("Transpose", &["x"], &["t"], &[("perm", Ints(&[1, 0]))]);
    graph.node("MatMul", &["x", "t"], &["m"])
}

/// The body of a loop over rows that adds each to a sum.
fn adding() -> Graph {
    let graph = Graph::default().floats_in("before", &[4]).floats_in("row", &[4]);
    let graph = graph.floats_out("after", &[4]).floats_out("shown", &[4]);
    let graph = graph.node("Add", &["before", "row"], &["after"]);
    graph.node("Identity", &["after"], &["shown"])
}

fn detector() -> Graph {
    let graph = Graph::default().floats_in("x", &[-1, 4]).numbers_out("y", &[-1, 3]);
    // Each row is an image with two boxes, whose scores are its first two values.
    let boxes = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0];
    let graph = graph.fractions("two", &[1, 2, 4], &boxes).fractions("over", &[1], &[0.5]);
    let graph = graph.constant("most", &[1], &[5]).constant("axes", &[1], &[1]);
    let graph = graph.constant("zero", &[1], &[0]).constant("end", &[1], &[2]);
    let graph = graph.node("Slice", &["x", "zero", "end", "axes"], &["pair"]);
    let graph = graph.node("Unsqueeze", &["pair", "axes"], &["scores"]);
    let graph = graph.node("Shape", &["x"], &["shape"]).constant("one", &[1], &[1]);
    let graph = graph.node("Slice", &["shape", "zero", "one"], &["n"]);
    let graph = graph.constant("rest", &[2], &[2, 4]);
    let graph = graph.node_set("Concat", &["n", "rest"], &["wide"], &[("axis", Int(0))]);
    let graph = graph.node("Expand", &["two", "wide"], &["boxes"]);
    graph.node("NonMaxSuppression", &["boxes", "scores", "most", "over", "over"], &["y"])
}

/// All of them.
pub(crate) fn corpus() -> Vec<Mixing> {
    let less = |graph: Graph| graph.node("Sub", &["x", "s"], &["y"]);
    let graphs = [
        ("mean-taken-off", less(reduced("ReduceMean"))),
        ("largest-taken-off", less(reduced("ReduceMax"))),
        ("smallest-taken-off", less(reduced("ReduceMin"))),
        ("length-one", reduced("ReduceL2").node("Div", &["x", "s"], &["y"])),
        (
            "sum-of-all",
            over_rows().node("ReduceSum", &["x"], &["s"]).node("Mul", &["x", "s"], &["y"]),
        ),
        ("softmax-of-rows", along("Softmax")),
        ("log-softmax-of-rows", along("LogSoftmax")),
        ("hardmax-of-rows", along("Hardmax")),
        ("normal-of-rows", along("LpNormalization")),
        (
            "running-sum",
            over_rows().node("ReduceMax", &["axes"], &["most"]).constant("axis", &[], &[0]).node(
                "CumSum",
                &["x", "axis"],
                &["y"],
            ),
        ),
        ("sorted", counted().node_set("TopK", &["x", "n"], &["y", "places"], &[("axis", Int(0))])),
        (
            "attention",
            products().node_set("Softmax", &["m"], &["a"], &[("axis", Int(1))]).node(
                "MatMul",
                &["a", "x"],
                &["y"],
            ),
        ),
        ("graph-of-rows", products().node("MatMul", &["m", "x"], &["y"])),
        (
            "lower-half",
            products().node_set("Trilu", &["m"], &["half"], &[("upper", Int(0))]).node(
                "MatMul",
                &["half", "x"],
                &["y"],
            ),
        ),
        (
            "scale-of-all",
            rows().node("DynamicQuantizeLinear", &["x"], &["q", "s", "z"]).node(
                "DequantizeLinear",
                &["q", "s", "z"],
                &["y"],
            ),
        ),
        ("lstm-over-time", recurrent("LSTM", 4, "forward")),
        ("gru-over-time", recurrent("GRU", 3, "forward")),
        ("rnn-backwards", recurrent("RNN", 1, "reverse")),
        (
            "convolution-over-time",
            back(
                turned()
                    .fractions(
                        "k",
                        &[4, 1, 3],
                        &[0.5, 1.0, -0.5, 1.0, 0.0, 1.0, 2.0, 1.0, 0.5, 0.1, 0.2, 0.3],
                    )
                    .node_set(
                        "Conv",
                        &["t", "k"],
                        &["u"],
                        &[("group", Int(4)), ("pads", Ints(&[1, 1]))],
                    ),
            ),
        ),
        (
            "largest-of-neighbours",
            back(turned().node_set(
                "MaxPool",
                &["t"],
                &["u"],
                &[("kernel_shape", Ints(&[3])), ("pads", Ints(&[1, 1]))],
            )),
        ),
        (
            "instance-norm-over-time",
            back(turned().fractions("s", &[4], &[1.0; 4]).fractions("b", &[4], &[0.0; 4]).node(
                "InstanceNormalization",
                &["t", "s", "b"],
                &["u"],
            )),
        ),
        (
            "mean-and-variance",
            rows().node_set("MeanVarianceNormalization", &["x"], &["y"], &[("axes", Ints(&[0]))]),
        ),
        (
            "last-first",
            over_rows().constant("from", &[1], &[-1]).constant("to", &[1], &[i64::MIN + 1]).node(
                "Slice",
                &["x", "from", "to", "axes", "from"],
                &["y"],
            ),
        ),
        (
            "first-added",
            over_rows().constant("at", &[1], &[0]).node("Gather", &["x", "at"], &["first"]).node(
                "Add",
                &["x", "first"],
                &["y"],
            ),
        ),
        (
            "rolled",
            over_rows()
                .constant("from", &[1], &[1])
                .constant("to", &[1], &[i64::MAX])
                .constant("start", &[1], &[0])
                .node("Slice", &["x", "from", "to", "axes"], &["later"])
                .node("Slice", &["x", "start", "from", "axes"], &["first"])
                .node_set("Concat", &["later", "first"], &["y"], &[("axis", Int(0))]),
        ),
        (
            "places-added",
            counted()
                .constant("start", &[], &[0])
                .constant("step", &[], &[1])
                .node("Squeeze", &["n"], &["end"])
                .node("Range", &["start", "end", "step"], &["places"])
                .constant("column", &[1], &[1])
                .node_set("Cast", &["places"], &["fractions"], &[("to", Int(1))])
                .node("Unsqueeze", &["fractions", "column"], &["p"])
                .node("Add", &["x", "p"], &["y"]),
        ),
        ("divided-by-their-number", counted().node("Div", &["x", "size"], &["y"])),
        (
            "interleaved",
            rows()
                .constant("turned", &[2], &[4, -1])
                .node("Reshape", &["x", "turned"], &["t"])
                .node_set("Transpose", &["t"], &["y"], &[("perm", Ints(&[1, 0]))]),
        ),
        ("detector", detector()),
        (
            "places-of-values",
            Graph::default()
                .floats_in("x", &ROW)
                .numbers_out("y", &[-1, -1])
                .node("NonZero", &["x"], &["n"])
                .node_set("Transpose", &["n"], &["y"], &[("perm", Ints(&[1, 0]))]),
        ),
        (
            "positive-rows",
            rows()
                .fractions("zero", &[], &[0.0])
                .constant("columns", &[1], &[1])
                .node_set(
                    "ReduceMax",
                    &["x"],
                    &["most"],
                    &[("axes", Ints(&[1])), ("keepdims", Int(0))],
                )
                .node("Greater", &["most", "zero"], &["keeps"])
                .node_set("Compress", &["x", "keeps"], &["y"], &[("axis", Int(0))]),
        ),
        (
            "sum-in-a-loop",
            rows().fractions("zero", &[4], &[0.0; 4]).scan(&["zero", "x"], &["end", "y"], adding()),
        ),
        (
            "one-rule-for-all",
            rows()
                .fractions("zero", &[], &[0.0])
                .node_set("ReduceSum", &["x"], &["s"], &[("keepdims", Int(0))])
                .node("Greater", &["s", "zero"], &["which"])
                .either(
                    "which",
                    [
                        Graph::default().floats_out("a", &ROW).node("Identity", &["x"], &["a"]),
                        Graph::default().floats_out("b", &ROW).node("Neg", &["x"], &["b"]),
                    ],
                ),
        ),
        (
            "named-rows",
            Graph::default()
                .floats_in("x", &ROW)
                .floats_out("y", &ROW)
                .node_set("ArgMax", &["x"], &["at"], &[("axis", Int(0)), ("keepdims", Int(1))])
                .node_set("Cast", &["at"], &["fractions"], &[("to", Int(1))])
                .node("Add", &["x", "fractions"], &["y"]),
        ),
    ];
    graphs.into_iter().map(|(name, graph)| Mixing { name, file: graph.model() }).collect()
}
