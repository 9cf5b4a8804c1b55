"""A transformer's encoder of two layers with seeded random weights, for benchmarks.

    python models/encoder/make.py target/models/encoder.onnx
    python models/encoder/make.py target/models/encoder-tokens.onnx texts

What it computes means nothing; how much it computes is that of two layers of MiniLM: input `input`
[N, 64, 384] (64 tokens, embedded), output `output` [N, 384], the mean over the tokens; 12 heads, 1536 inside of
the feed-forward part, 3.5 million weights. With `texts` the inputs are those of a text model: `input_ids`
[N, tokens], int64, of 1,024 tokens, and `attention_mask` [N, tokens], int64, which is 1 for those that count.
"""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

OPSET = 17
SEED = 11
LAYERS, TOKENS, WIDTH, HEADS, INSIDE, VOCABULARY = 2, 64, 384, 12, 1536, 1024


class Graph:
    def __init__(self, has_mask):
        self.random = np.random.default_rng(SEED)
        # In a shape, 0 is the size that the data has.
        self.tokens = 0 if has_mask else TOKENS
        self.hidden = None
        self.nodes, self.constants = [], []

    def constant(self, values):
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, kind, *inputs, **attributes):
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def linear(self, data, inputs, outputs):
        weight = self.random.standard_normal((inputs, outputs)).astype(np.float32) * np.float32(inputs**-0.5)
        bias = self.random.standard_normal(outputs).astype(np.float32) * np.float32(0.01)
        return self.node("Add", self.node("MatMul", data, self.constant(weight)), self.constant(bias))

    def normalized(self, data):
        scale, bias = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
        return self.node("LayerNormalization", data, self.constant(scale), self.constant(bias), axis=-1)

    def heads(self, data):
        shape = self.constant(np.array([0, self.tokens, HEADS, WIDTH // HEADS], np.int64))
        return self.node("Transpose", self.node("Reshape", data, shape), perm=[0, 2, 1, 3])

    def attention(self, data):
        query, key, value = (self.heads(self.linear(data, WIDTH, WIDTH)) for _ in range(3))
        scores = self.node("MatMul", query, self.node("Transpose", key, perm=[0, 1, 3, 2]))
        scale = self.constant(np.array((WIDTH // HEADS) ** -0.5, np.float32))
        scaled = self.node("Mul", scores, scale)
        weights = self.node("Softmax", self.node("Add", scaled, self.hidden) if self.hidden else scaled, axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", weights, value), perm=[0, 2, 1, 3])
        shape = self.constant(np.array([0, self.tokens, WIDTH], np.int64))
        return self.linear(self.node("Reshape", mixed, shape), WIDTH, WIDTH)

    def gelu(self, data):
        half, one = (self.constant(np.array(value, np.float32)) for value in (0.5, 1.0))
        root = self.constant(np.array(2**-0.5, np.float32))
        error = self.node("Add", self.node("Erf", self.node("Mul", data, root)), one)
        return self.node("Mul", self.node("Mul", data, error), half)

    def hide(self, mask):
        """Give tokens that do not count a score that no other can outdo."""
        one, large = (self.constant(np.array(value, np.float32)) for value in (1, 1e9))
        axes = self.constant(np.array([1, 2], np.int64))
        hidden = self.node("Mul", self.node("Sub", mask, one), large)
        self.hidden = self.node("Unsqueeze", hidden, axes)

    def masked_mean(self, data, mask):
        last, tokens = (self.constant(np.array([axis], np.int64)) for axis in (2, 1))
        marked = self.node("Mul", data, self.node("Unsqueeze", mask, last))
        total = self.node("ReduceSum", marked, tokens, keepdims=0)
        return self.node("Div", total, self.node("ReduceSum", mask, tokens, keepdims=1))


def main():
    path, has_mask = Path(sys.argv[1]), "texts" in sys.argv[2:]
    graph = Graph(has_mask)
    data, mask = "input", None
    if has_mask:
        mask = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
        graph.hide(mask)
        vectors = graph.random.standard_normal((VOCABULARY, WIDTH)).astype(np.float32)
        data = graph.node("Gather", graph.constant(vectors), "input_ids")
    for _ in range(LAYERS):
        data = graph.normalized(graph.node("Add", data, graph.attention(data)))
        inside = graph.gelu(graph.linear(data, WIDTH, INSIDE))
        data = graph.normalized(graph.node("Add", data, graph.linear(inside, INSIDE, WIDTH)))
    if has_mask:
        mean = helper.make_node("Identity", [graph.masked_mean(data, mask)], ["output"], name="mean")
    else:
        mean = helper.make_node("ReduceMean", [data], ["output"], name="mean", axes=[1], keepdims=0)
    graph.nodes.append(mean)

    value = helper.make_tensor_value_info
    inputs = [value("input", TensorProto.FLOAT, ["N", TOKENS, WIDTH])]
    if has_mask:
        names = ["input_ids", "attention_mask"]
        inputs = [value(name, TensorProto.INT64, ["N", "tokens"]) for name in names]
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "encoder",
            inputs,
            [value("output", TensorProto.FLOAT, ["N", WIDTH])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=9,
    )
    checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(model, path)
    print(f"{path}: {path.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
