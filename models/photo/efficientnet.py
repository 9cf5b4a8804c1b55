"""Writes EfficientNet-Lite0 as an ONNX file.

The layers are those of the package efficientnet_lite_pytorch, for inference. Batch normalisation stays as it is:
runtimes fold it into the convolutions.
"""

import struct

import onnx_file
from onnx_file import FLOAT32

SIDE = 224
CLASSES = 1000
EPSILON = 1e-3
# The kinds of blocks: how many in a row, and the stride of the first one.
BLOCKS = [(1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1)]

# Of the format and of the operators. ONNX Runtime has known them since 1.8.
VERSIONS = 7, 13


def lite0(weights):
    """The model with these tensors (of `checkpoint`) by their names, as the bytes of an ONNX file."""
    graph = Graph(weights)
    value = graph.relu6(graph.convolution("images", "_conv_stem", "_bn0", stride=2))
    names = (f"_blocks.{index}." for index in range(sum(count for count, _ in BLOCKS)))
    for count, stride in BLOCKS:
        value = graph.block(value, next(names), stride)
        for _ in range(count - 1):
            repeated = graph.block(value, next(names))
            value = graph.node("Add", [repeated, value])
    value = graph.relu6(graph.convolution(value, "_conv_head", "_bn1"))
    value = graph.node("Flatten", [graph.node("GlobalAveragePool", [value])])
    graph.node("Gemm", [value, *graph.tensors("_fc", "weight", "bias")], "logits", transB=1)
    return graph.model()


class Graph:
    """The nodes so far. Its methods add some and return the name of the last one's output."""

    def __init__(self, weights):
        self.weights = weights
        self.nodes = []
        self.initializers = {}
        self.initialize("zero", (), bytes(4))
        self.initialize("six", (), struct.pack("<f", 6))
        # Of a picture at the node that was added last.
        self.side = SIDE

    def block(self, value, name, stride=1):
        """More channels, but not in the first block; each channel on its own; fewer channels."""
        if f"{name}_expand_conv.weight" in self.weights:
            value = self.relu6(self.convolution(value, f"{name}_expand_conv", f"{name}_bn0"))
        value = self.relu6(self.convolution(value, f"{name}_depthwise_conv", f"{name}_bn1", stride))
        return self.convolution(value, f"{name}_project_conv", f"{name}_bn2")

    def convolution(self, value, name, norm, stride=1):
        channels, channels_in, kernel, _ = self.weights[f"{name}.weight"].shape
        side = -(-self.side // stride)
        # As TensorFlow's "SAME": of an odd number of pixels the larger half comes last.
        padding = max((side - 1) * stride + kernel - self.side, 0)
        before, after = padding // 2, padding - padding // 2
        self.side = side
        value = self.node(
            "Conv",
            [value, *self.tensors(name, "weight")],
            group=channels if channels_in == 1 else 1,
            kernel_shape=[kernel, kernel],
            pads=[before, before, after, after],
            strides=[stride, stride],
        )
        parts = self.tensors(norm, "weight", "bias", "running_mean", "running_var")
        return self.node("BatchNormalization", [value, *parts], epsilon=EPSILON)

    def relu6(self, value):
        return self.node("Clip", [value, "zero", "six"])

    def tensors(self, name, *parts):
        """The names of these tensors, which become part of the model."""
        names = [f"{name}.{part}" for part in parts]
        for full in names:
            shape, elements = self.weights[full]
            self.initialize(full, shape, elements.tobytes())
        return names

    def initialize(self, name, shape, elements):
        self.initializers[name] = onnx_file.tensor(name, FLOAT32, shape, elements)

    def node(self, operator, inputs, output=None, **attributes):
        output = output or f"{operator}.{len(self.nodes)}"
        self.nodes.append(onnx_file.node(operator, inputs, output, **attributes))
        return output

    def model(self):
        """The bytes of an ONNX file of all nodes."""
        inputs = [onnx_file.end("images", FLOAT32, ["N", 3, SIDE, SIDE])]
        outputs = [onnx_file.end("logits", FLOAT32, ["N", CLASSES])]
        initializers = self.initializers.values()
        return onnx_file.model(VERSIONS, "efficientnet-lite0", self.nodes, initializers, inputs, outputs)
