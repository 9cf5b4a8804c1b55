"""Writes EfficientNet-Lite0 as an ONNX file.

The layers are those of the package efficientnet_lite_pytorch, for inference. Batch normalisation stays as it is:
runtimes fold it into the convolutions. An ONNX file is a message of Protocol Buffers, so Python alone writes it.
"""

import struct

SIDE = 224
CLASSES = 1000
EPSILON = 1e-3
# The kinds of blocks: how many in a row, and the stride of the first one.
BLOCKS = [(1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1)]

# Versions of the format and of the operators, which ONNX Runtime has known since 1.8.
IR_VERSION, OPSET = 7, 13
# ONNX's numbers of a datatype, and of the types of attributes.
FLOAT32 = 1
FLOAT, INT, INTS = 1, 2, 7


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
        self.initializers = {"zero": tensor("zero", (), bytes(4)), "six": tensor("six", (), struct.pack("<f", 6))}
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
            self.initializers[full] = tensor(full, shape, elements.tobytes())
        return names

    def node(self, operator, inputs, output=None, **attributes):
        output = output or f"{operator}.{len(self.nodes)}"
        message = [field(1, name) for name in inputs]
        message += [field(2, output), field(3, output), field(4, operator)]
        message += [field(5, attribute(name, value)) for name, value in attributes.items()]
        self.nodes.append(field(1, *message))
        return output

    def model(self):
        """The bytes of an ONNX file (ModelProto) of all nodes."""
        initializers = [field(5, initializer) for initializer in self.initializers.values()]
        ends = [
            field(11, end("images", ["N", 3, SIDE, SIDE])),
            field(12, end("logits", ["N", CLASSES])),
        ]
        graph = field(7, *self.nodes, field(2, "efficientnet-lite0"), *initializers, *ends)
        return field(1, IR_VERSION) + graph + field(8, field(2, OPSET))


def attribute(name, value):
    """An AttributeProto."""
    if isinstance(value, float):
        return field(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, FLOAT)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, INT)
    return field(1, name) + b"".join(field(8, item) for item in value) + field(20, INTS)


def tensor(name, shape, elements):
    """A TensorProto."""
    dimensions = [field(1, dimension) for dimension in shape]
    return b"".join([*dimensions, field(2, FLOAT32), field(8, name), field(9, elements)])


def end(name, shape):
    """A ValueInfoProto, of an input or an output. A dimension that is a text is open."""
    dimensions = [field(1, field(2 if isinstance(one, str) else 1, one)) for one in shape]
    return field(1, name) + field(2, field(1, field(1, FLOAT32), field(2, *dimensions)))


def field(number, *values):
    """A field of a message: a number, a text, or bytes, which are joined."""
    if isinstance(values[0], int):
        return varint(number << 3) + varint(values[0])
    content = b"".join(part.encode() if isinstance(part, str) else part for part in values)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number):
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
