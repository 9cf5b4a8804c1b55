import io
import sys

import pytest

from gristmill_plugin import Dtype, Internal, InvalidInput, UnsupportedMediaType, image, testing
from gristmill_plugin.image import Color, Filter, Layout, Pixels, Placement

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


def test_transparent_pixels_are_blended_with_black():
    body = encoded(Image.new("RGBA", (1, 1), (200, 100, 0, 128)))
    assert Pixels.decode(body).tobytes() == bytes([100, 50, 0])


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


def test_without_pillow_the_error_says_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pillow"):
        gray(1, 1, b"1")
