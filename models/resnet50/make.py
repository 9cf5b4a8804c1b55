"""ResNet-50 (v1.5, batch norm folded into the convolutions) with seeded random weights, for benchmarks.

    python models/resnet50/make.py target/models/resnet50.onnx [fp32|fp16]

What it computes means nothing; how much it computes is ResNet-50's: input `input` [N, 3, 224, 224], output
`output` [N, 1000], 25.5 million weights, 4.1 billion multiply-adds a row. All of it is FP32, or FP16 with
the same weights, rounded.
"""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

OPSET = 17
SEED = 7
STAGES = [(3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)]
PRECISIONS = {"fp32": (np.float32, TensorProto.FLOAT), "fp16": (np.float16, TensorProto.FLOAT16)}


class Graph:
    def __init__(self, dtype):
        self.random = np.random.default_rng(SEED)
        self.dtype = dtype
        self.nodes, self.weights = [], []

    def weight(self, name, shape, scale):
        values = self.random.standard_normal(shape).astype(np.float32) * np.float32(scale)
        self.weights.append(numpy_helper.from_array(values.astype(self.dtype), name))
        return name

    def node(self, kind, inputs, **attributes):
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def conv(self, data, channels_in, channels, kernel, stride):
        name = f"conv_{len(self.nodes)}"
        fan_in = channels_in * kernel * kernel
        weight = self.weight(f"{name}.weight", (channels, channels_in, kernel, kernel), (1 / fan_in) ** 0.5)
        bias = self.weight(f"{name}.bias", (channels,), 0.01)
        pads = [kernel // 2] * 4
        return self.node(
            "Conv", [data, weight, bias], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads
        )

    def bottleneck(self, data, channels_in, width, stride):
        out = self.node("Relu", [self.conv(data, channels_in, width, 1, 1)])
        out = self.node("Relu", [self.conv(out, width, width, 3, stride)])
        out = self.conv(out, width, width * 4, 1, 1)
        if stride != 1 or channels_in != width * 4:
            data = self.conv(data, channels_in, width * 4, 1, stride)
        return self.node("Relu", [self.node("Add", [out, data])])


def main():
    path, precision = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "fp32"
    dtype, element = PRECISIONS[precision]
    graph = Graph(dtype)
    data = graph.node("Relu", [graph.conv("input", 3, 64, 7, 2)])
    data = graph.node("MaxPool", [data], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for blocks, width, stride in STAGES:
        for block in range(blocks):
            data = graph.bottleneck(data, channels, width, stride if block == 0 else 1)
            channels = width * 4
    data = graph.node("Flatten", [graph.node("GlobalAveragePool", [data])])
    head = graph.weight("head.weight", (channels, 1000), channels**-0.5)
    bias = graph.weight("head.bias", (1000,), 0.01)
    graph.nodes.append(helper.make_node("Gemm", [data, head, bias], ["output"], name="head"))

    value = helper.make_tensor_value_info
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "resnet50",
            [value("input", element, ["N", 3, 224, 224])],
            [value("output", element, ["N", 1000])],
            graph.weights,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=9,
    )
    checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(model, path)
    size = sum(np.prod(weight.dims) for weight in graph.weights)
    print(f"{path}: {size / 1e6:.1f} million weights, {path.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
