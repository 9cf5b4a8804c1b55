import io
import sys

import pytest

from gristmill_plugin import Dtype, Internal, InvalidInput, UnsupportedMediaType, image, testing
from gristmill_plugin.image import (
    Color,
    Filter,
    Label,
    Layout,
    Pixels,
    Placement,
    Polygon,
    Rectangle,
)

Image = pytest.importorskip("PIL.Image")


def encoded(picture, format="PNG", **options):
    file = io.BytesIO()
    picture.save(file, format, **options)
    return testing.request(file.getvalue()).body


def gray(width, height, data):
    return Pixels.from_bytes(width, height, Color.GRAY, bytes(data))


def test_decode_to_rgb_and_gray():
    body = encoded(Image.new("RGB", (2, 1), (255, 0, 0)))
    picture = Pixels.decode(body)
    assert (picture.width, picture.height, picture.color) == (2, 1, Color.RGB)
    assert picture.tobytes() == bytes([255, 0, 0] * 2)
    assert Pixels.decode(body, Color.GRAY).tobytes() == bytes([76, 76])


def test_transparent_pixels_have_their_colours():
    body = encoded(Image.new("RGBA", (1, 1), (200, 100, 0, 128)))
    assert Pixels.decode(body).tobytes() == bytes([200, 100, 0])


def test_of_16_bits_the_upper_8_are_taken():
    values = b"".join(value.to_bytes(2, "little") for value in (129, 511, 0x7F80, 0xFFFF))
    body = encoded(Image.frombytes("I;16", (4, 1), values))
    assert Pixels.decode(body, Color.GRAY).tobytes() == bytes([0, 1, 127, 255])


def test_decode_turns_the_picture_upright():
    exif = Image.Exif()
    exif[0x0112] = 6
    body = encoded(Image.new("RGB", (4, 2)), "JPEG", exif=exif)
    assert Pixels.decode(body).width == 2
    assert Pixels.decode(body, upright=False).width == 4


def test_what_is_not_a_picture_is_refused():
    with pytest.raises(UnsupportedMediaType, match="not a JPEG, PNG, WebP, BMP or GIF"):
        Pixels.decode(testing.request(b"text").body)
    whole = bytes(encoded(Image.effect_noise((64, 64), 90), "JPEG"))
    cut = testing.request(whole[: len(whole) // 2]).body
    with pytest.raises(InvalidInput, match="malformed image: "):
        Pixels.decode(cut)
    assert Pixels.decode(cut, lenient=True).width == 64
    assert Pixels.decode(whole).width == 64
    with pytest.raises(TypeError, match="data is str, not Blob"):
        Pixels.decode("photo.jpg")


def test_resize_crop_and_pad():
    picture = gray(2, 2, [10, 20, 30, 40])
    assert picture.resize(1, 1).tobytes() == bytes([25])
    assert picture.resize(4, 2, Filter.NEAREST).tobytes() == bytes([10, 10, 20, 20, 30, 30, 40, 40])
    assert picture.crop(1, 0, 1, 2).tobytes() == bytes([20, 40])
    assert picture.pad(left=1, bottom=1, fill=[9]).tobytes() == bytes(
        [9, 10, 20, 9, 30, 40, 9, 9, 9]
    )
    assert gray(300, 200, bytes(60_000)).resize_shorter(50).width == 75
    assert gray(4, 3, range(12)).center_crop(2, 1).tobytes() == bytes([5, 6])


def test_sizes_are_rounded_as_by_torchvision():
    four_to_three = gray(640, 480, bytes(640 * 480))
    assert four_to_three.resize_shorter(224).width == 298
    assert gray(480, 640, bytes(640 * 480)).resize_shorter(224).height == 298
    # int(round(margin / 2.0)) of a margin of 0, 1, ..
    starts = [gray(9 + n, 1, range(9 + n)).center_crop(9, 1).tobytes()[0] for n in range(8)]
    assert starts == [0, 0, 1, 2, 2, 2, 3, 4]


def test_statistics_are_of_each_channel():
    (luma,) = gray(3, 1, [7, 255, 2]).statistics()
    assert (luma.min, luma.max, luma.mean) == (2, 255, 88.0)
    coloured = Pixels.from_bytes(2, 1, Color.RGB, bytes([0, 51, 255, 1, 2, 3])).statistics()
    found = [(channel.min, channel.max, channel.mean) for channel in coloured]
    assert found == [(0, 1, 0.5), (2, 51, 26.5), (3, 255, 129.0)]


@pytest.mark.parametrize(
    "fault",
    [
        lambda picture: picture.resize(0, 1),
        lambda picture: picture.crop(1, 0, 2, 1),
        lambda picture: picture.center_crop(3, 1),
        lambda picture: picture.pad(left=1, fill=[1, 2]),
        lambda picture: picture.to_tensor(color=Color.RGB),
        lambda picture: picture.to_tensor(dtype=Dtype.INT64),
        lambda picture: picture.to_tensor(dtype=Dtype.UINT8, scale=2),
        lambda picture: picture.to_tensor(mean=[1, 2]),
        lambda picture: picture.to_tensor(std=[0]),
        lambda picture: Pixels.from_bytes(2, 2, Color.GRAY, b"123"),
        lambda picture: Pixels.from_bytes(1, 1, Color.BGR, b"123"),
    ],
)
def test_arguments_out_of_range_are_the_plugins_fault(fault):
    with pytest.raises(Internal):
        fault(gray(2, 2, bytes(4)))


def test_a_side_must_be_an_integer():
    with pytest.raises(TypeError, match=r"width is 1\.0, not an integer"):
        gray(2, 2, bytes(4)).resize(1.0, 1)


def test_letterbox_is_undone_by_its_placement():
    found = gray(4, 2, [100] * 8).letterbox(8, 8, fill=[7])
    assert found.placement == Placement(2.0, 2.0, 0, 2, 4, 2)
    rows = [found.pixels.tobytes()[at : at + 8] for at in range(0, 64, 8)]
    assert set(rows[0] + rows[1] + rows[6] + rows[7]) == {7}
    assert set(rows[2] + rows[5]) == {100}
    assert found.placement.to_original((0, 2, 8, 6)) == (0, 0, 4, 2)
    assert found.placement.to_original((2, 0, 4, 8)) == (1, 0, 2, 2)


def test_a_tensor_has_the_asked_layout_and_order():
    picture = Pixels.from_bytes(2, 1, Color.RGB, bytes([0, 51, 102, 255, 0, 0]))
    tensor = picture.to_tensor()
    assert (tensor.dtype, tensor.shape) == (Dtype.FLOAT32, (1, 3, 1, 2))
    assert tensor.view().values.tolist() == pytest.approx([0, 1, 0.2, 0, 0.4, 0])
    raw = picture.to_tensor(dtype=Dtype.UINT8, layout=Layout.NHWC, color=Color.BGR)
    assert (raw.shape, raw.tobytes()) == ((1, 1, 2, 3), bytes([102, 51, 0, 0, 0, 255]))
    normal = picture.to_tensor(mean=image.IMAGENET_MEAN, std=image.IMAGENET_STD)
    assert normal.view()[1] == pytest.approx((1 - 0.485) / 0.229)
    assert picture.to_tensor(color=Color.GRAY, scale=1).view().tolist() == [[[[42, 76]]]]


def rows(width, height, *shapes):
    """The rows of a black picture with shapes on it."""
    drawn = gray(width, height, bytes(width * height)).draw(shapes).tobytes()
    marks = "".join("#" if value else "." for value in drawn)
    return [marks[at : at + width] for at in range(0, width * height, width)]


def test_shapes_are_drawn_as_by_the_host():
    # As in host/imaging/tests/it/draw.rs.
    white = (255, 255, 255)
    assert rows(8, 6, Rectangle((1, 0.6, 7.4, 5), white, 1)) == [
        "........",
        ".######.",
        ".#....#.",
        ".#....#.",
        ".######.",
        "........",
    ]
    assert rows(8, 6, Rectangle((-2, -1, 5, 5), white)) == [
        "#####...",
        "...##...",
        "...##...",
        "#####...",
        "#####...",
        "........",
    ]
    assert rows(8, 6, Polygon([(1, 1), (6, 1), (1, 4)], white, 1)) == [
        "........",
        ".######.",
        ".#..##..",
        ".###....",
        ".#......",
        "........",
    ]
    assert rows(9, 6, Polygon([(1, 1), (7, 3)], white)) == [
        ".........",
        ".##......",
        ".#####...",
        "...######",
        "......###",
        ".........",
    ]
    assert rows(4, 2, Polygon([(-1e30, -1e30), (1e30, 1e30)], white, 1)) == ["#...", ".#.."]
    assert rows(4, 3, Label("A", (-1, 0), white, 1)) == ["####", "#...", "#..."]
    assert rows(2, 2, Rectangle((1, 1, 0, 0), white), Label(" ", (0, 0), white)) == ["..", ".."]


def test_colours_are_luma_on_a_gray_picture():
    shape = Rectangle((0, 0, 1, 1), (200, 100, 50), 1)
    assert gray(2, 1, [1, 2]).draw([shape]).tobytes() == bytes([124, 2])
    coloured = Pixels.from_bytes(2, 1, Color.RGB, bytes(6)).draw([shape])
    assert coloured.tobytes() == bytes([200, 100, 50, 0, 0, 0])


@pytest.mark.parametrize(
    ("shape", "fault", "why"),
    [
        (Rectangle((0, 0, 1, 1), thickness=65), Internal, r"shapes\[0\]: thickness is 65"),
        (Polygon([], thickness=0), Internal, "it must be 1 to 64"),
        (Polygon([(0, 0)] * 1025), Internal, "1025 points"),
        (Label("A" * 257, (0, 0)), Internal, "more than 256 characters"),
        (Label("A", (0, 0), size=0), Internal, "size is 0"),
        (Rectangle((0, 0, 1, float("nan"))), ValueError, "box is NaN"),
        (Rectangle((0, 0, 1, 1), (0, 0, 256)), ValueError, "3 values from 0 to 255"),
        (Label(7, (0, 0)), TypeError, "text is 7, not a text"),
        ("box", TypeError, "shape is str, not Rectangle or Polygon or Label"),
    ],
)
def test_shapes_out_of_range_are_refused(shape, fault, why):
    with pytest.raises(fault, match=why):
        gray(1, 1, [0]).draw([shape])


def test_many_parts_are_cropped_at_once():
    picture = gray(3, 2, [1, 2, 3, 4, 5, 6])
    parts = picture.crop_many([(0, 0, 1, 2), (1, 0, 2, 2)])
    assert [part.tobytes() for part in parts] == [bytes([1, 4]), bytes([2, 3, 5, 6])]
    small = picture.crop_many([(0, 0, 1, 2), (1, 0, 2, 2)], (1, 1), Filter.NEAREST)
    assert [(part.width, part.height, part.color) for part in small] == [(1, 1, Color.GRAY)] * 2
    with pytest.raises(Internal, match=r"boxes\[1\]: crop of 2x2 at \(2, 0\)"):
        picture.crop_many([(0, 0, 1, 2), (2, 0, 2, 2)])
    with pytest.raises(Internal, match="1025 boxes"):
        picture.crop_many([(0, 0, 1, 1)] * 1025)
    with pytest.raises(TypeError, match=r"x is 0\.5, not an integer"):
        picture.crop_many([(0.5, 0, 1, 1)])


def test_a_picture_becomes_a_file():
    picture = Pixels.from_bytes(2, 1, Color.RGB, bytes([0, 51, 255, 1, 2, 3]))
    for format in ("png", "webp"):
        assert Pixels.decode(picture.encode(format)).tobytes() == picture.tobytes()
    again = Pixels.decode(gray(8, 8, [90] * 64).encode(quality=90), Color.GRAY)
    assert all(abs(value - 90) < 3 for value in again.tobytes())
    with pytest.raises(Internal, match="1 to 100, not 0"):
        picture.encode(quality=0)
    with pytest.raises(ValueError, match="format is 'gif'"):
        picture.encode("gif")


def test_without_pillow_the_error_says_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pillow"):
        gray(1, 1, b"1")
