"""Writes ONNX files, with Python alone: such a file is a message of Protocol Buffers.

Fields have the numbers of onnx.proto. Each function returns the bytes of a message, or of fields.
"""

import struct

# ONNX's numbers of datatypes.
FLOAT32, INT64, FLOAT16 = 1, 7, 10
# Those of the types of attributes.
FLOAT, INT, INTS = 1, 2, 7


def model(versions, name, nodes, initializers, inputs, outputs):
    """A ModelProto. `versions` are those of the format and of the operators."""
    format_version, operators_version = versions
    parts = [(1, nodes), (2, [name]), (5, initializers), (11, inputs), (12, outputs)]
    graph = field(7, *(field(number, part) for number, values in parts for part in values))
    return field(1, format_version) + graph + field(8, field(2, operators_version))


def node(operator, inputs, output, **attributes):
    """A NodeProto, named as its output."""
    message = [field(1, name) for name in inputs]
    message += [field(2, output), field(3, output), field(4, operator)]
    message += [field(5, attribute(name, value)) for name, value in attributes.items()]
    return b"".join(message)


def attribute(name, value):
    """An AttributeProto."""
    if isinstance(value, float):
        return field(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, FLOAT)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, INT)
    return field(1, name) + b"".join(field(8, item) for item in value) + field(20, INTS)


def tensor(name, datatype, shape, elements):
    """A TensorProto."""
    dimensions = [field(1, dimension) for dimension in shape]
    return b"".join([*dimensions, field(2, datatype), field(8, name), field(9, elements)])


def end(name, datatype, shape):
    """A ValueInfoProto, of an input or an output. A dimension that is a text is open."""
    dimensions = [field(1, field(2 if isinstance(one, str) else 1, one)) for one in shape]
    return field(1, name) + field(2, field(1, field(1, datatype), field(2, *dimensions)))


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
