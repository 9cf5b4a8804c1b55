"""MobileNetV3-small (batch norm folded into the convolutions) with seeded random weights, for benchmarks.

    python models/photos/make.py target/models/photos.onnx

How much it computes is MobileNetV3-small's: input `input` [N, 3, 224, 224], output `output` [N, 1000], 2.5 million
weights, 56 million multiply-adds a row. Its labels mean nothing, but they differ between pictures.
"""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

OPSET = 17
SEED = 13

# The variance of a layer's weights is GAIN over the number of its inputs. With less the activations
# fade from layer to layer, and every picture gets the same label. With more they explode.
GAIN = 2.5
# Of the last layer: it makes one label stand out, with a probability that is not 1.
HEAD_SCALE = 0.5

# Kernel, width inside, channels out, squeeze and excite, activation, stride: table 2 of the paper
# "Searching for MobileNetV3".
BLOCKS = [
    (3, 16, 16, True, "Relu", 2),
    (3, 72, 24, False, "Relu", 2),
    (3, 88, 24, False, "Relu", 1),
    (5, 96, 40, True, "HardSwish", 2),
    (5, 240, 40, True, "HardSwish", 1),
    (5, 240, 40, True, "HardSwish", 1),
    (5, 120, 48, True, "HardSwish", 1),
    (5, 144, 48, True, "HardSwish", 1),
    (5, 288, 96, True, "HardSwish", 2),
    (5, 576, 96, True, "HardSwish", 1),
    (5, 576, 96, True, "HardSwish", 1),
]


class Graph:
    def __init__(self):
        self.random = np.random.default_rng(SEED)
        self.nodes, self.weights = [], []

    def weight(self, name, shape, scale):
        values = self.random.standard_normal(shape).astype(np.float32) * np.float32(scale)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def node(self, kind, inputs, **attributes):
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def conv(self, data, channels_in, channels, kernel=1, stride=1, group=1):
        name = f"conv_{len(self.nodes)}"
        fan_in = channels_in // group * kernel * kernel
        shape = (channels, channels_in // group, kernel, kernel)
        weight = self.weight(f"{name}.weight", shape, (GAIN / fan_in) ** 0.5)
        bias = self.weight(f"{name}.bias", (channels,), 0.01)
        return self.node(
            "Conv",
            [data, weight, bias],
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[kernel // 2] * 4,
            group=group,
        )

    def squeeze_and_excite(self, data, channels):
        squeezed = (channels // 4 + 4) // 8 * 8
        out = self.node("GlobalAveragePool", [data])
        out = self.node("Relu", [self.conv(out, channels, squeezed)])
        out = self.node("HardSigmoid", [self.conv(out, squeezed, channels)], alpha=1 / 6, beta=0.5)
        return self.node("Mul", [data, out])

    def block(self, data, channels_in, block):
        kernel, width, channels, has_squeeze, activation, stride = block
        out = data
        if width != channels_in:
            out = self.node(activation, [self.conv(out, channels_in, width)])
        out = self.node(activation, [self.conv(out, width, width, kernel, stride, group=width)])
        if has_squeeze:
            out = self.squeeze_and_excite(out, width)
        out = self.conv(out, width, channels)
        is_residual = stride == 1 and channels_in == channels
        return self.node("Add", [out, data]) if is_residual else out

    def linear(self, data, channels_in, channels, scale, name=None):
        weight = self.weight(f"linear_{channels}.weight", (channels_in, channels), scale / channels_in**0.5)
        bias = self.weight(f"linear_{channels}.bias", (channels,), 0.01)
        if name is None:
            return self.node("Gemm", [data, weight, bias])
        self.nodes.append(helper.make_node("Gemm", [data, weight, bias], [name], name=name))
        return name


def main():
    path = Path(sys.argv[1])
    graph = Graph()
    data = graph.node("HardSwish", [graph.conv("input", 3, 16, 3, 2)])
    channels = 16
    for block in BLOCKS:
        data = graph.block(data, channels, block)
        channels = block[2]
    data = graph.node("HardSwish", [graph.conv(data, channels, 576)])
    data = graph.node("Flatten", [graph.node("GlobalAveragePool", [data])])
    data = graph.node("HardSwish", [graph.linear(data, 576, 1024, 2**0.5)])
    graph.linear(data, 1024, 1000, HEAD_SCALE, "output")

    value = helper.make_tensor_value_info
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "photos",
            [value("input", TensorProto.FLOAT, ["N", 3, 224, 224])],
            [value("output", TensorProto.FLOAT, ["N", 1000])],
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
