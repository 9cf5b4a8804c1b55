"""Pictures. The host decodes and resizes them, at native speed.

photo = request.body  # or Blob.from_base64(request.json()["image"])
photo = Pixels.decode_resized(photo, shorter=256).center_crop(224, 224)
tensor = photo.to_tensor(mean=IMAGENET_MEAN, std=IMAGENET_STD)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import checks
from .blob import Blob
from .failure import Failure, Internal, InvalidInput, Unprocessable, UnsupportedMediaType
from .host import Err
from .host import image as host_image
from .tensor import Dtype, Tensor

ChannelStatistics = host_image.ChannelStatistics
Color = host_image.Color
Filter = host_image.Filter
Layout = host_image.Layout

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "ChannelStatistics",
    "Color",
    "Filter",
    "Label",
    "Layout",
    "Letterboxed",
    "Pixels",
    "Placement",
    "Polygon",
    "Rectangle",
    "Shape",
]

#: ImageNet's mean of red, green and blue, for values from 0 to 1.
IMAGENET_MEAN = (0.485, 0.456, 0.406)

#: ImageNet's standard deviation of red, green and blue, for values from 0 to 1.
IMAGENET_STD = (0.229, 0.224, 0.225)


class Pixels:
    """A decoded picture, 8 bits a channel, row-major, channels interleaved. Immutable.

    Its methods raise `Internal` for an argument out of range, and `Unprocessable` if the picture
    has more pixels than the host allows or the work would take more memory or CPU time than the
    call has left.
    """

    __slots__ = ("_color", "_handle")

    def __init__(self, handle: host_image.Pixels, color: Color) -> None:
        """For the SDK itself. Use `decode` or `from_bytes`."""
        self._handle = handle
        self._color = color

    @classmethod
    def decode(
        cls,
        data: Blob | bytes | bytearray | memoryview,
        color: Color = Color.RGB,
        *,
        upright: bool = True,
        lenient: bool = False,
    ) -> Pixels:
        """Decode a JPEG, PNG, WebP or BMP, or the first frame of a GIF.

        `data` is a blob, or bytes of the plugin, which are copied to the host. `color` is RGB or
        GRAY. `upright` turns the picture as its EXIF orientation says. `lenient` decodes also the
        readable part of a damaged JPEG, PNG or GIF.

        Raises `UnsupportedMediaType` if the bytes are none of these formats, and `InvalidInput` if
        they are malformed.
        """
        data, options = _source(data, color, upright)
        function = host_image.Pixels.decode_leniently if lenient else host_image.Pixels.decode
        try:
            return cls(function(data._handle, options), _held(color))
        except Err as error:
            raise _failure(error) from None

    @classmethod
    def decode_resized(
        cls,
        data: Blob | bytes | bytearray | memoryview,
        color: Color = Color.RGB,
        *,
        shorter: int | None = None,
        size: tuple[int, int] | None = None,
        filter: Filter = Filter.BILINEAR,
        upright: bool = True,
    ) -> Pixels:
        """`decode`, and then `resize_shorter(shorter)` or `resize(*size)`, faster.

        A JPEG whose sides are at least four times as long as those of the result is decoded at a
        half, a quarter or an eighth of its size. A photo then differs by about 2 of 255, and by
        0.3 in the mean. The same errors are raised.
        """
        if (shorter is None) == (size is None):
            raise TypeError("decode_resized takes `shorter` or `size`: one of the two")
        target: host_image.ResizedSize
        if shorter is not None:
            target = host_image.ResizedSize_Shorter(checks.u32("shorter", shorter))
        else:
            assert size is not None
            width, height = size
            sides = checks.u32("width", width), checks.u32("height", height)
            target = host_image.ResizedSize_Exact(sides)
        checks.case("filter", filter, Filter)
        data, options = _source(data, color, upright)
        try:
            handle = host_image.Pixels.decode_resized(data._handle, options, target, filter)
        except Err as error:
            raise _failure(error) from None
        return cls(handle, _held(color))

    @classmethod
    def decode_letterboxed(
        cls,
        data: Blob | bytes | bytearray | memoryview,
        width: int,
        height: int,
        color: Color = Color.RGB,
        *,
        filter: Filter = Filter.BILINEAR,
        fill: Sequence[int] = (),
        upright: bool = True,
    ) -> Letterboxed:
        """`decode`, and then `letterbox`, as fast as `decode_resized`."""
        width, height = checks.u32("width", width), checks.u32("height", height)
        checks.case("filter", filter, Filter)
        data, options = _source(data, color, upright)
        function = host_image.Pixels.decode_letterboxed
        try:
            found = function(data._handle, options, width, height, filter, bytes(fill))
        except Err as error:
            raise _failure(error) from None
        return _letterboxed(found, _held(color))

    @classmethod
    def from_bytes(
        cls, width: int, height: int, color: Color, data: bytes | bytearray | memoryview
    ) -> Pixels:
        """A picture from its bytes, row-major, channels interleaved. `color` is RGB or GRAY."""
        width, height = checks.u32("width", width), checks.u32("height", height)
        checks.case("color", color, Color)
        data = memoryview(data).tobytes()
        try:
            handle = host_image.Pixels.from_bytes(width, height, color, data)
        except Err as error:
            raise _failure(error) from None
        return cls(handle, _held(color))

    @property
    def width(self) -> int:
        """Width in pixels."""
        return self._handle.width()

    @property
    def height(self) -> int:
        """Height in pixels."""
        return self._handle.height()

    @property
    def color(self) -> Color:
        """RGB or GRAY."""
        return self._color

    def tobytes(self) -> bytes:
        """The bytes, row-major, channels interleaved, copied from the host."""
        return self._handle.data()

    def statistics(self) -> list[ChannelStatistics]:
        """Of each channel the smallest, the largest and the mean value: `min`, `max`, `mean`."""
        return self._handle.statistics()

    def resize(self, width: int, height: int, filter: Filter = Filter.BILINEAR) -> Pixels:
        """The picture stretched to another size. The ratio of its sides may change."""
        width, height = checks.u32("width", width), checks.u32("height", height)
        checks.case("filter", filter, Filter)
        try:
            return Pixels(self._handle.resize(width, height, filter), self._color)
        except Err as error:
            raise _failure(error) from None

    def resize_shorter(self, size: int, filter: Filter = Filter.BILINEAR) -> Pixels:
        """The picture resized so that its shorter side has `size` pixels. The ratio stays.

        The longer side is rounded down, as by torchvision's `Resize`.
        """
        size = checks.u32("size", size)
        checks.case("filter", filter, Filter)
        try:
            return Pixels(self._handle.resize_shorter(size, filter), self._color)
        except Err as error:
            raise _failure(error) from None

    def crop(self, x: int, y: int, width: int, height: int) -> Pixels:
        """The rectangle whose upper left corner is (`x`, `y`). It must lie within the picture."""
        x, y = checks.u32("x", x), checks.u32("y", y)
        width, height = checks.u32("width", width), checks.u32("height", height)
        try:
            return Pixels(self._handle.crop(x, y, width, height), self._color)
        except Err as error:
            raise _failure(error) from None

    def crop_many(
        self,
        boxes: Iterable[Sequence[int]],
        size: tuple[int, int] | None = None,
        filter: Filter = Filter.BILINEAR,
    ) -> list[Pixels]:
        """The rectangles (x, y, width, height), as `crop` takes them, in one call of the host.

        There are at most 1024. If `size` is given (width, height), each is resized to it.
        """
        parts = [
            host_image.CropBox(*(checks.u32(name, value) for name, value in _sides(box)))
            for box in boxes
        ]
        if size is not None:
            width, height = size
            size = checks.u32("width", width), checks.u32("height", height)
        checks.case("filter", filter, Filter)
        try:
            found = self._handle.crop_many(parts, size, filter)
        except Err as error:
            raise _failure(error) from None
        return [Pixels(part, self._color) for part in found]

    def draw(self, shapes: Iterable[Shape]) -> Pixels:
        """The picture with shapes on it, each over those before it: at most 4096.

        A shape is a `Rectangle`, a `Polygon` or a `Label`. Parts outside of the picture are cut
        off. On a gray picture a colour becomes its luma.
        """
        drawn = []
        for shape in shapes:
            checks.instance("shape", shape, (Rectangle, Polygon, Label))
            drawn.append(shape._raw())
        try:
            return Pixels(self._handle.draw(drawn), self._color)
        except Err as error:
            raise _failure(error) from None

    def encode(self, format: str = "jpeg", *, quality: int = 85) -> Blob:
        """The picture as a file, whose bytes stay on the host until they are read.

        `format` is "jpeg", "png" or "webp", which is without loss. `quality` is that of a JPEG, 1
        to 100.

        `Response(bytes(picture.encode()), "image/jpeg")` answers with it.
        """
        encoding: host_image.Encoding
        if format == "jpeg":
            (value,) = checks.u8s("quality", [quality], 1)
            encoding = host_image.Encoding_Jpeg(value)
        elif format == "png":
            encoding = host_image.Encoding_Png()
        elif format == "webp":
            encoding = host_image.Encoding_WebpLossless()
        else:
            raise ValueError(f"format is {format!r}, not 'jpeg', 'png' or 'webp'")
        try:
            return Blob(self._handle.encode(encoding))
        except Err as error:
            raise _failure(error) from None

    def center_crop(self, width: int, height: int) -> Pixels:
        """The rectangle of this size in the middle. The picture must be at least as large.

        Half a pixel is rounded to the even number, as by torchvision's `CenterCrop`.
        """
        width, height = checks.u32("width", width), checks.u32("height", height)
        try:
            return Pixels(self._handle.center_crop(width, height), self._color)
        except Err as error:
            raise _failure(error) from None

    def pad(
        self,
        left: int = 0,
        top: int = 0,
        right: int = 0,
        bottom: int = 0,
        *,
        fill: Sequence[int] = (),
    ) -> Pixels:
        """The picture with a border. `fill` has one value per channel, or is empty for 0."""
        border = host_image.Border(
            checks.u32("left", left),
            checks.u32("top", top),
            checks.u32("right", right),
            checks.u32("bottom", bottom),
        )
        try:
            return Pixels(self._handle.pad(border, bytes(fill)), self._color)
        except Err as error:
            raise _failure(error) from None

    def letterbox(
        self,
        width: int,
        height: int,
        filter: Filter = Filter.BILINEAR,
        *,
        fill: Sequence[int] = (),
    ) -> Letterboxed:
        """The picture resized to fit into `width` and `height`, in the middle of that size.

        The ratio of its sides stays. The rest is `fill`, as in `pad`.
        """
        width, height = checks.u32("width", width), checks.u32("height", height)
        checks.case("filter", filter, Filter)
        try:
            found = self._handle.letterbox(width, height, filter, bytes(fill))
        except Err as error:
            raise _failure(error) from None
        return _letterboxed(found, self._color)

    def to_tensor(
        self,
        *,
        dtype: Dtype = Dtype.FLOAT32,
        layout: Layout = Layout.NCHW,
        color: Color | None = None,
        scale: float | None = None,
        mean: Sequence[float] = (),
        std: Sequence[float] = (),
    ) -> Tensor:
        """The picture as a tensor of one row: [1, c, h, w] or [1, h, w, c].

        A FLOAT32 element is `(value * scale - mean[c]) / std[c]`. `scale` is 1/255 if it is not
        given, which makes values from 0 to 1. `mean` and `std` have one value per channel in the
        tensor's order; empty means 0 and 1. A UINT8 tensor has the values as they are. `color` is
        the picture's own if it is not given. A gray picture cannot become a coloured tensor.
        """
        if color is None:
            color = self._color
        if scale is None:
            scale = 1.0 if dtype is Dtype.UINT8 else 1 / 255
        options = host_image.TensorOptions(
            checks.case("dtype", dtype, Dtype),
            checks.case("layout", layout, Layout),
            checks.case("color", color, Color),
            checks.f32("scale", scale),
            checks.f32s("mean", mean),
            checks.f32s("std", std),
        )
        try:
            return Tensor(self._handle.to_tensor(options))
        except Err as error:
            raise _failure(error) from None


@dataclass(frozen=True)
class Rectangle:
    """The outline of a box, for `Pixels.draw`. The line lies within the box.

    A line that is as thick as half of a side fills the box.
    """

    #: The edges (x0, y0, x1, y1) in pixels, rounded to the nearest.
    box: Sequence[float]
    #: Red, green, blue: 0 to 255.
    color: Sequence[int] = (255, 0, 0)
    #: The width of the line in pixels, 1 to 64.
    thickness: int = 2

    def _raw(self) -> host_image.Shape:
        x0, y0, x1, y1 = (checks.pixel("box", value) for value in self.box)
        width, height = max(x1 - x0, 0), max(y1 - y0, 0)
        thickness = checks.u32("thickness", self.thickness)
        raw = host_image.Rectangle(x0, y0, width, height, thickness, _rgb(self.color))
        return host_image.Shape_Rectangle(raw)


@dataclass(frozen=True)
class Polygon:
    """The outline of a polygon, for `Pixels.draw`: also from its last point to its first."""

    #: At most 1024 points (x, y) in pixels, rounded to the nearest, in the middle of the lines.
    points: Sequence[Sequence[float]]
    #: Red, green, blue: 0 to 255.
    color: Sequence[int] = (255, 0, 0)
    #: The width of the lines in pixels, 1 to 64.
    thickness: int = 2

    def _raw(self) -> host_image.Shape:
        points = [(checks.pixel("x", x), checks.pixel("y", y)) for x, y in self.points]
        thickness = checks.u32("thickness", self.thickness)
        raw = host_image.Polygon(points, thickness, _rgb(self.color))
        return host_image.Shape_Polygon(raw)


@dataclass(frozen=True)
class Label:
    """A line of text, for `Pixels.draw`, in a font of 8 by 8 pixels.

    It has the characters of ASCII, Latin-1 and Greek. Others are drawn as a box, and in unit tests
    all are.
    """

    #: At most 256 characters.
    text: str
    #: The upper left corner (x, y) in pixels, rounded to the nearest.
    at: Sequence[float]
    #: Red, green, blue: 0 to 255.
    color: Sequence[int] = (255, 0, 0)
    #: The side of a pixel of the font, 1 to 64 pixels: 2 gives characters of 16 by 16.
    size: int = 2

    def _raw(self) -> host_image.Shape:
        x, y = (checks.pixel("at", value) for value in self.at)
        text, size = checks.text("text", self.text), checks.u32("size", self.size)
        return host_image.Shape_Label(host_image.Label(x, y, text, size, _rgb(self.color)))


#: What `Pixels.draw` draws.
Shape = Rectangle | Polygon | Label


@dataclass(frozen=True)
class Placement:
    """Where `letterbox` put a picture.

    A point (x, y) of the result is the point ((x - left) / scale_x, (y - top) / scale_y) of the
    picture.
    """

    #: Width in the result over width before.
    scale_x: float
    #: Height in the result over height before.
    scale_y: float
    #: Columns of filling to the left of the picture.
    left: int
    #: Rows of filling above the picture.
    top: int
    #: The picture's width before.
    width: int
    #: The picture's height before.
    height: int

    def to_original(self, box: Sequence[float]) -> tuple[float, float, float, float]:
        """A box (x0, y0, x1, y1) of the result as a box of the picture, cut at its edges."""
        x0, y0, x1, y1 = box
        left, top, width, height = self.left, self.top, self.width, self.height
        return (
            min(max((x0 - left) / self.scale_x, 0.0), width),
            min(max((y0 - top) / self.scale_y, 0.0), height),
            min(max((x1 - left) / self.scale_x, 0.0), width),
            min(max((y1 - top) / self.scale_y, 0.0), height),
        )


@dataclass(frozen=True)
class Letterboxed:
    """The result of `letterbox`."""

    pixels: Pixels
    placement: Placement


def _sides(box: Sequence[int]) -> Iterable[tuple[str, int]]:
    """The numbers of a box with their names."""
    return zip(("x", "y", "width", "height"), box, strict=True)


def _rgb(color: Sequence[int]) -> tuple[int, int, int]:
    red, green, blue = checks.u8s("color", color, 3)
    return red, green, blue


def _source(
    data: Blob | bytes | bytearray | memoryview, color: Color, upright: bool
) -> tuple[Blob, host_image.DecodeOptions]:
    """A file as a blob, and how it is decoded."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        data = Blob.from_bytes(data)
    checks.instance("data", data, Blob)
    checks.case("color", color, Color)
    return data, host_image.DecodeOptions(color, bool(upright))


def _letterboxed(found: host_image.Letterboxed, color: Color) -> Letterboxed:
    at = found.placement
    placement = Placement(at.scale_x, at.scale_y, at.left, at.top, at.width, at.height)
    return Letterboxed(Pixels(found.pixels, color), placement)


def _held(color: Color) -> Color:
    """The colour of a picture that is made with `color`."""
    return Color.GRAY if color is Color.GRAY else Color.RGB


def _failure(error: Err[host_image.ImageError]) -> Failure:
    """A picture that cannot be read is the client's fault; a wrong argument is the plugin's."""
    why = error.value
    if isinstance(why, host_image.ImageError_UnknownFormat):
        return UnsupportedMediaType("not a JPEG, PNG, WebP, BMP or GIF")
    if isinstance(why, host_image.ImageError_Malformed):
        return InvalidInput(f"malformed image: {why.value}")
    if isinstance(why, host_image.ImageError_TooLarge):
        return Unprocessable(why.value)
    return Internal(why.value)
