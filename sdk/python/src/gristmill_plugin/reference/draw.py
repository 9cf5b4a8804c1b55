"""Shapes on a picture, as the host draws them.

It has no font: each character of a label but a space is a box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

#: What a call may draw at most, as in the host.
SHAPES_MAX = 4096
_POLYGON_POINTS_MAX = 1024
_POINTS_MAX = 65_536
_LABEL_CHARS_MAX = 256
_THICKNESS_MAX = 64
_LABEL_SIZE_MAX = 64

#: The rows of a character that the font lacks. The lowest bit is the pixel to the left.
_MISSING = (0x7E, 0x42, 0x42, 0x42, 0x42, 0x42, 0x7E, 0)

_Rgb = tuple[int, int, int]

#: A rectangle by its edges: left, top, right, bottom.
_Area = tuple[int, int, int, int]


@dataclass
class Rectangle:
    x: int
    y: int
    width: int
    height: int
    thickness: int
    color: _Rgb


@dataclass
class Polygon:
    points: list[tuple[int, int]]
    thickness: int
    color: _Rgb


@dataclass
class Label:
    x: int
    y: int
    text: str
    size: int
    color: _Rgb


@dataclass
class Shape_Rectangle:
    value: Rectangle


@dataclass
class Shape_Polygon:
    value: Polygon


@dataclass
class Shape_Label:
    value: Label


Shape = Shape_Rectangle | Shape_Polygon | Shape_Label


def drawn(data: bytes, size: tuple[int, int], channels: int, shapes: list[Shape]) -> bytes:
    """The bytes of a picture with shapes on it. Raises `ValueError` for what the host refuses."""
    _check(shapes)
    target = bytearray(data)
    width, height = size
    for shape in shapes:
        color = bytes(shape.value.color)
        pixel = color if channels == 3 else bytes([_luma(*color)])
        for left, top, right, bottom in _areas(shape, size):
            left, right = max(left, 0), min(right, width)
            if left >= right:
                continue
            row = pixel * (right - left)
            for y in range(max(top, 0), min(bottom, height)):
                start = (y * width + left) * channels
                target[start : start + len(row)] = row
    return bytes(target)


def _check(shapes: list[Shape]) -> None:
    if len(shapes) > SHAPES_MAX:
        raise ValueError(f"{len(shapes)} shapes; the limit is {SHAPES_MAX}")
    points = sum(len(shape.value.points) for shape in shapes if isinstance(shape, Shape_Polygon))
    if points > _POINTS_MAX:
        raise ValueError(f"{points} points of polygons; the limit is {_POINTS_MAX}")
    for index, shape in enumerate(shapes):
        name, value, most = "thickness", 1, _THICKNESS_MAX
        if isinstance(shape, Shape_Label):
            if len(shape.value.text) > _LABEL_CHARS_MAX:
                why = f"the text has more than {_LABEL_CHARS_MAX} characters"
                raise ValueError(f"shapes[{index}]: {why}")
            name, value, most = "size", shape.value.size, _LABEL_SIZE_MAX
        else:
            value = shape.value.thickness
            if isinstance(shape, Shape_Polygon) and len(shape.value.points) > _POLYGON_POINTS_MAX:
                why = f"{len(shape.value.points)} points; the limit is {_POLYGON_POINTS_MAX}"
                raise ValueError(f"shapes[{index}]: {why}")
        if not 1 <= value <= most:
            raise ValueError(f"shapes[{index}]: {name} is {value}; it must be 1 to {most}")


def _areas(shape: Shape, size: tuple[int, int]) -> Iterator[_Area]:
    if isinstance(shape, Shape_Rectangle):
        return _sides(shape.value)
    if isinstance(shape, Shape_Polygon):
        return _outline(shape.value, size)
    return _boxes(shape.value)


def _sides(shape: Rectangle) -> Iterator[_Area]:
    left, top, thickness = shape.x, shape.y, shape.thickness
    right, bottom = left + shape.width, top + shape.height
    if 2 * thickness >= min(shape.width, shape.height):
        yield left, top, right, bottom
        return
    yield left, top, right, top + thickness
    yield left, bottom - thickness, right, bottom
    yield left, top + thickness, left + thickness, bottom - thickness
    yield right - thickness, top + thickness, right, bottom - thickness


def _outline(shape: Polygon, size: tuple[int, int]) -> Iterator[_Area]:
    thickness, points = shape.thickness, shape.points
    for a, b in zip(points, chain(points[1:], points[:1]), strict=True):
        yield from _line(a, b, thickness, size)
    for x, y in points:
        left, top = x - (thickness - 1) // 2, y - (thickness - 1) // 2
        yield left, top, left + thickness, top + thickness


def _line(
    a: tuple[int, int], b: tuple[int, int], thickness: int, size: tuple[int, int]
) -> Iterator[_Area]:
    is_flat = abs(b[0] - a[0]) >= abs(b[1] - a[1])
    along = 0 if is_flat else 1
    start, end = (a, b) if a[along] <= b[along] else (b, a)
    first, last, across = start[along], end[along], start[1 - along]
    slope = (end[1 - along] - across) / (last - first) if last != first else 0.0
    bar = math.floor(thickness * math.sqrt(1.0 + slope * slope) + 0.5)
    for place in range(max(first, 0), min(last, size[along] - 1) + 1):
        middle = math.floor(across + (place - first) * slope + 0.5)
        edge = middle - (bar - 1) // 2
        if is_flat:
            yield place, edge, place + 1, edge + bar
        else:
            yield edge, place, edge + bar, place + 1


def _boxes(shape: Label) -> Iterator[_Area]:
    side = shape.size
    for index, character in enumerate(shape.text):
        if character.isspace():
            continue
        for row, bits in enumerate(_MISSING):
            for column in range(8):
                if bits >> column & 1:
                    left, top = shape.x + (8 * index + column) * side, shape.y + row * side
                    yield left, top, left + side, top + side


def _luma(red: int, green: int, blue: int) -> int:
    return (red * 299 + green * 587 + blue * 114 + 500) // 1000
