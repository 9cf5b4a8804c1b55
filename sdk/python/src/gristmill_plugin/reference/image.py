"""The interface `image`, through Pillow.

Decoding JPEG may differ from the server by 1 or 2 of 255 in a channel, because the decoders
differ. Resizing may differ by 1: Pillow resizes rows first, the server columns first, and both
round to 8 bits between the two. A file that is encoded here shows the same, in other bytes.
"""

from __future__ import annotations

import io
from array import array
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from . import draw
from .draw import (
    Label,
    Polygon,
    Rectangle,
    Shape,
    Shape_Label,
    Shape_Polygon,
    Shape_Rectangle,
)
from .result import Err
from .tensors import Dtype, Tensor
from .types import Blob

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = [
    "Border",
    "ChannelStatistics",
    "Color",
    "CropBox",
    "DecodeOptions",
    "Encoding",
    "Encoding_Jpeg",
    "Encoding_Png",
    "Encoding_WebpLossless",
    "Filter",
    "ImageError",
    "ImageError_InvalidArgument",
    "ImageError_Malformed",
    "ImageError_TooLarge",
    "ImageError_UnknownFormat",
    "Label",
    "Layout",
    "Letterboxed",
    "Pixels",
    "Placement",
    "Polygon",
    "Rectangle",
    "ResizedSize",
    "ResizedSize_Exact",
    "ResizedSize_Shorter",
    "Shape",
    "Shape_Label",
    "Shape_Polygon",
    "Shape_Rectangle",
    "TensorOptions",
]

_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF")

#: The most boxes of `crop_many`, as in the host.
_BOXES_MAX = 1024


class Color(Enum):
    """How pixels are laid out."""

    RGB = 0
    BGR = 1
    GRAY = 2


class Layout(Enum):
    """Order of a tensor's dimensions."""

    NCHW = 0
    NHWC = 1


class Filter(Enum):
    """How `resize` weighs source pixels. All but NEAREST are antialiased when shrinking."""

    NEAREST = 0
    BILINEAR = 1
    BICUBIC = 2
    LANCZOS3 = 3


@dataclass
class ImageError_UnknownFormat:
    pass


@dataclass
class ImageError_Malformed:
    value: str


@dataclass
class ImageError_TooLarge:
    value: str


@dataclass
class ImageError_InvalidArgument:
    value: str


ImageError = (
    ImageError_UnknownFormat
    | ImageError_Malformed
    | ImageError_TooLarge
    | ImageError_InvalidArgument
)


@dataclass
class DecodeOptions:
    color: Color
    upright: bool


@dataclass
class TensorOptions:
    dtype: Dtype
    layout: Layout
    color: Color
    scale: float
    mean: list[float]
    std: list[float]


@dataclass
class Placement:
    scale_x: float
    scale_y: float
    left: int
    top: int
    width: int
    height: int


@dataclass
class Letterboxed:
    pixels: Pixels
    placement: Placement


@dataclass
class ChannelStatistics:
    min: int
    max: int
    mean: float


@dataclass
class Encoding_Jpeg:
    value: int


@dataclass
class Encoding_Png:
    pass


@dataclass
class Encoding_WebpLossless:
    pass


Encoding = Encoding_Jpeg | Encoding_Png | Encoding_WebpLossless


@dataclass
class ResizedSize_Exact:
    value: tuple[int, int]


@dataclass
class ResizedSize_Shorter:
    value: int


ResizedSize = ResizedSize_Exact | ResizedSize_Shorter


@dataclass
class CropBox:
    x: int
    y: int
    width: int
    height: int


@dataclass
class Border:
    left: int
    top: int
    right: int
    bottom: int


class Pixels:
    """A decoded picture: a Pillow image of mode RGB or L."""

    def __init__(self, picture: Image) -> None:
        self._picture = picture

    @classmethod
    def decode(cls, data: Blob, options: DecodeOptions) -> Pixels:
        return cls(_decoded(data, options, lenient=False))

    @classmethod
    def decode_leniently(cls, data: Blob, options: DecodeOptions) -> Pixels:
        return cls(_decoded(data, options, lenient=True))

    @classmethod
    def decode_resized(
        cls, data: Blob, options: DecodeOptions, size: ResizedSize, filter: Filter
    ) -> Pixels:
        picture = cls.decode(data, options)
        if isinstance(size, ResizedSize_Shorter):
            return picture.resize_shorter(size.value, filter)
        return picture.resize(*size.value, filter)

    @classmethod
    def decode_letterboxed(
        cls,
        data: Blob,
        options: DecodeOptions,
        width: int,
        height: int,
        filter: Filter,
        fill: bytes,
    ) -> Letterboxed:
        return cls.decode(data, options).letterbox(width, height, filter, fill)

    @classmethod
    def from_bytes(cls, width: int, height: int, color: Color, data: bytes) -> Pixels:
        if color is Color.BGR:
            raise _invalid("color is BGR: a picture is RGB or GRAY")
        expected = width * height * (1 if color is Color.GRAY else 3)
        if expected == 0 or len(data) != expected:
            raise _invalid(f"{width}x{height} picture of {len(data)} bytes, not {expected}")
        mode = "L" if color is Color.GRAY else "RGB"
        return cls(_pillow().Image.frombytes(mode, (width, height), data))

    def width(self) -> int:
        return self._picture.width

    def height(self) -> int:
        return self._picture.height

    def color(self) -> Color:
        return Color.GRAY if self._picture.mode == "L" else Color.RGB

    def resize(self, width: int, height: int, filter: Filter) -> Pixels:
        if width == 0 or height == 0:
            raise _invalid(f"cannot resize to {width}x{height}")
        if (width, height) == self._picture.size:
            return self
        resampling = _pillow().Image.Resampling
        kernel = {
            Filter.NEAREST: resampling.NEAREST,
            Filter.BILINEAR: resampling.BILINEAR,
            Filter.BICUBIC: resampling.BICUBIC,
            Filter.LANCZOS3: resampling.LANCZOS,
        }[filter]
        return Pixels(self._picture.resize((width, height), kernel))

    def resize_shorter(self, size: int, filter: Filter) -> Pixels:
        width, height = self._picture.size
        longer = size * max(width, height) // min(width, height)
        return self.resize(*((size, longer) if width <= height else (longer, size)), filter)

    def pad(self, border: Border, fill: bytes) -> Pixels:
        width, height = self._picture.size
        size = (width + border.left + border.right, height + border.top + border.bottom)
        made = _pillow().Image.new(self._picture.mode, size, self._fill(fill))
        made.paste(self._picture, (border.left, border.top))
        return Pixels(made)

    def letterbox(self, width: int, height: int, filter: Filter, fill: bytes) -> Letterboxed:
        old_width, old_height = self._picture.size
        if width * old_height <= height * old_width:
            fitted = width, max(_scaled(old_height, width, old_width), min(height, 1))
        else:
            fitted = max(_scaled(old_width, height, old_height), min(width, 1)), height
        small = self.resize(*fitted, filter)
        left, top = (width - fitted[0]) // 2, (height - fitted[1]) // 2
        border = Border(left, top, width - fitted[0] - left, height - fitted[1] - top)
        scale_x, scale_y = fitted[0] / old_width, fitted[1] / old_height
        placement = Placement(scale_x, scale_y, left, top, old_width, old_height)
        return Letterboxed(small.pad(border, fill), placement)

    def crop(self, x: int, y: int, width: int, height: int) -> Pixels:
        size = self._picture.size
        if width == 0 or height == 0 or x + width > size[0] or y + height > size[1]:
            raise _invalid(
                f"crop of {width}x{height} at ({x}, {y}) is not within {size[0]}x{size[1]}"
            )
        return Pixels(self._picture.crop((x, y, x + width, y + height)))

    def center_crop(self, width: int, height: int) -> Pixels:
        left, top = (
            round(max(own - part, 0) / 2)
            for own, part in zip(self._picture.size, (width, height), strict=True)
        )
        return self.crop(left, top, width, height)

    def crop_many(
        self, boxes: list[CropBox], size: tuple[int, int] | None, filter: Filter
    ) -> list[Pixels]:
        if len(boxes) > _BOXES_MAX:
            raise _invalid(f"{len(boxes)} boxes are given; the limit is {_BOXES_MAX}")
        parts = []
        for index, box in enumerate(boxes):
            try:
                part = self.crop(box.x, box.y, box.width, box.height)
            except Err as error:
                raise _invalid(f"boxes[{index}]: {error.value.value}") from None
            parts.append(part if size is None else part.resize(*size, filter))
        return parts

    def draw(self, shapes: list[Shape]) -> Pixels:
        picture = self._picture
        channels = len(picture.getbands())
        try:
            data = draw.drawn(picture.tobytes(), picture.size, channels, shapes)
        except ValueError as error:
            raise _invalid(str(error)) from None
        return Pixels(_pillow().Image.frombytes(picture.mode, picture.size, data))

    def encode(self, format: Encoding) -> Blob:
        file = io.BytesIO()
        if isinstance(format, Encoding_Jpeg):
            if not 1 <= format.value <= 100:
                raise _invalid(f"the quality of a JPEG is 1 to 100, not {format.value}")
            self._picture.save(file, "JPEG", quality=format.value, subsampling=0)
        elif isinstance(format, Encoding_Png):
            self._picture.save(file, "PNG")
        else:
            self._picture.save(file, "WEBP", lossless=True)
        return Blob(file.getvalue())

    def to_tensor(self, options: TensorOptions) -> Tensor:
        order = {Color.RGB: (0, 1, 2), Color.BGR: (2, 1, 0), Color.GRAY: (0,)}[options.color]
        picture = self._picture
        if options.color is Color.GRAY:
            picture = picture.convert("L")
        elif picture.mode == "L":
            raise _invalid("a gray picture cannot become a coloured tensor: decode it as rgb")
        planes = [picture.getchannel(at).tobytes() for at in order]
        data = _mapped(planes, options)
        width, height = picture.size
        count = len(planes)
        if options.layout is Layout.NCHW:
            return Tensor.create(
                options.dtype, [1, count, height, width], b"".join(p.tobytes() for p in data)
            )
        mixed = array(data[0].typecode, bytes(data[0].itemsize * count * width * height))
        for at, plane in enumerate(data):
            mixed[at::count] = plane
        return Tensor.create(options.dtype, [1, height, width, count], mixed.tobytes())

    def statistics(self) -> list[ChannelStatistics]:
        found = []
        for channel in range(len(self._picture.getbands())):
            values = self._picture.getchannel(channel).tobytes()
            mean = array("f", [sum(values) / len(values)])[0]
            found.append(ChannelStatistics(min(values), max(values), mean))
        return found

    def data(self) -> bytes:
        return self._picture.tobytes()

    def _fill(self, fill: bytes) -> Any:
        channels = len(self._picture.getbands())
        if fill and len(fill) != channels:
            raise _invalid(f"fill has {len(fill)} values for {channels} channels")
        values = tuple(fill) or (0,) * channels
        return values if channels > 1 else values[0]


def _decoded(data: Blob, options: DecodeOptions, *, lenient: bool) -> Image:
    pil = _pillow()
    before = pil.ImageFile.LOAD_TRUNCATED_IMAGES
    pil.ImageFile.LOAD_TRUNCATED_IMAGES = lenient
    try:
        picture = pil.Image.open(io.BytesIO(data.read(0, data.len())), formats=_FORMATS)
        picture.load()
    except pil.UnidentifiedImageError:
        raise Err(ImageError_UnknownFormat()) from None
    except pil.Image.DecompressionBombError as error:
        raise Err(ImageError_TooLarge(str(error))) from None
    except (OSError, SyntaxError, ValueError) as error:
        raise Err(ImageError_Malformed(str(error))) from None
    finally:
        pil.ImageFile.LOAD_TRUNCATED_IMAGES = before
    if options.upright:
        picture = pil.ImageOps.exif_transpose(picture)
    if picture.mode in ("I", "I;16"):
        # Gray of 16 bits. Pillow makes white of nearly all values, the host takes the upper 8 bits.
        picture = pil.Image.frombytes("L", picture.size, picture.convert("I").tobytes()[1::4])
    return picture.convert("L" if options.color is Color.GRAY else "RGB")  # type: ignore[no-any-return]


def _mapped(planes: list[bytes], options: TensorOptions) -> list[array[Any]]:
    """The channels' values as numbers."""
    count = len(planes)
    for name, values in (("mean", options.mean), ("std", options.std)):
        if values and len(values) != count:
            raise _invalid(f"{name} has {len(values)} values for {count} channels")
    mean, std = options.mean or [0.0] * count, options.std or [1.0] * count
    if 0 in std:
        raise _invalid("std cannot be 0")
    if options.dtype is Dtype.UINT8:
        if options.scale != 1 or any(mean) or any(value != 1 for value in std):
            raise _invalid("a uint8 tensor takes scale 1 and neither mean nor std")
        return [array("B", plane) for plane in planes]
    if options.dtype is not Dtype.FLOAT32:
        raise _invalid(f"a picture becomes FLOAT32 or UINT8, not {options.dtype.name}")
    mapped = []
    for plane, m, s in zip(planes, mean, std, strict=True):
        table = [(value * options.scale - m) / s for value in range(256)]
        mapped.append(array("f", map(table.__getitem__, plane)))
    return mapped


def _scaled(side: int, numerator: int, denominator: int) -> int:
    """`side` * numerator / denominator, rounded."""
    return (2 * side * numerator + denominator) // (2 * denominator)


def _invalid(text: str) -> Err[ImageError]:
    return Err(ImageError_InvalidArgument(text))


class _Pillow:
    """The parts of Pillow that are used here."""

    def __init__(self) -> None:
        from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

        self.Image = Image
        self.ImageFile = ImageFile
        self.ImageOps = ImageOps
        self.UnidentifiedImageError = UnidentifiedImageError


def _pillow() -> Any:
    try:
        return _Pillow()
    except ImportError:
        raise ModuleNotFoundError(
            "pictures on the reference host need Pillow: pip install pillow", name="PIL"
        ) from None
