//! Models of texts: their rows have any number of places.

use super::onnx::Graph;
use super::onnx::Set::{Int, Ints};

const FLOAT: i64 = 1;

/// From `ids` and `attention_mask` to `mean`, the mean of the ids that the mask marks, and to
/// `tokens`, by how much each id is more.
pub(crate) fn masked() -> Vec<u8> {
    let dims = ["rows", "places"];
    let graph = Graph::default().numbers_named("ids", &dims);
    let graph = graph.numbers_named("attention_mask", &dims);
    let graph = graph.floats_out("tokens", &[-1, -1]).floats_out("mean", &[-1, 1]);
    let graph = graph.constant("axes", &[1], &[1]);
    let to_float = [("to", Int(FLOAT))];
    let graph = graph.node_set("Cast", &["ids"], &["values"], &to_float);
    let graph = graph.node_set("Cast", &["attention_mask"], &["mask"], &to_float);
    let graph = graph.node("Mul", &["values", "mask"], &["marked"]);
    let graph = graph.node("ReduceSum", &["marked", "axes"], &["sum"]);
    let graph = graph.node("ReduceSum", &["mask", "axes"], &["count"]);
    let graph = graph.node("Div", &["sum", "count"], &["mean"]);
    graph.node("Sub", &["values", "mean"], &["tokens"]).model()
}

/// From fractions `x` to `y`, their mean: a place that fills a row up changes it.
pub(crate) fn unmasked() -> Vec<u8> {
    let graph = Graph::default().floats_in("x", &[-1, -1]).floats_out("y", &[-1, 1]);
    graph.node_set("ReduceMean", &["x"], &["y"], &[("axes", Ints(&[1]))]).model()
}
