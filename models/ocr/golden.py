"""Render pages of text, and record what RapidOCR reads on them and on the pages that fetch.py takes out of a package.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install -r models/ocr/golden-requirements.txt
    /tmp/golden/bin/python models/ocr/golden.py target/models/ocr

It writes samples/*.png and golden.json. The fonts are DejaVu Sans, of matplotlib's package, and Noto Sans CJK. With
--compare URL it writes nothing, and compares the answers of a server with RapidOCR's:

    /tmp/golden/bin/python models/ocr/golden.py --compare http://127.0.0.1:8080/v1/demo/infer/ocr PICTURES..
"""

import json
import sys
import urllib.request
from pathlib import Path

import cvttf_NotoSansCJK_Regular
import matplotlib
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR

HERE = Path(__file__).parent
FETCHED = ["page.png", "text.png"]
DEJAVU = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"
[NOTO] = Path(cvttf_NotoSansCJK_Regular.__file__).parent.glob("*.[to]t[fc]")
INK, PAPER = (24, 28, 40), (252, 251, 247)


def font(size, path=DEJAVU):
    return ImageFont.truetype(str(path), size)


def page(width, height):
    picture = Image.new("RGB", (width, height), PAPER)
    return picture, ImageDraw.Draw(picture)


def line(text, size, path=DEJAVU):
    """A picture of a line of text, with a margin."""
    left, top, right, bottom = font(size, path).getbbox(text)
    picture, draw = page(right - left + 20, bottom - top + 20)
    draw.text((10 - left, 10 - top), text, INK, font(size, path))
    return picture


def invoice():
    """30 boxes: a heading, a table with three columns, a total, and a last line."""
    picture, draw = page(1000, 860)
    draw.text((60, 40), "Invoice 2024-117", INK, font(36))
    draw.text((60, 110), "Harbour Street 9, Port Louis", INK, font(22))
    items = [
        ("Copper wire", "12", "48.60"),
        ("Steel bolts", "250", "31.25"),
        ("Glass panel", "3", "117.00"),
        ("Hinges, brass", "16", "52.80"),
        ("Paint roller", "4", "19.96"),
        ("Sandpaper", "40", "14.00"),
        ("Varnish", "2", "38.50"),
        ("Brushes", "6", "22.74"),
    ]
    for row, cells in enumerate([("Item", "Pieces", "Price"), *items]):
        for x, cell in zip((60, 480, 760), cells):
            draw.text((x, 180 + 56 * row), cell, INK, font(24))
    for x, cell in zip((480, 760), ("Total", "344.85")):
        draw.text((x, 710), cell, INK, font(28))
    draw.text((60, 800), "Thank you for your order", INK, font(20))
    return picture


def turned():
    """Lines that are askew, upside down and upright."""
    picture, _ = page(900, 820)
    for text, angle, place in [
        ("Seven degrees upwards", 7, (60, 60)),
        ("Twelve degrees downwards", -12, (320, 150)),
        ("This side is up", 180, (60, 330)),
        ("From bottom to top", 90, (60, 420)),
        ("Straight and plain", 0, (260, 520)),
    ]:
        drawn = line(text, 34).rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor=PAPER)
        picture.paste(drawn, place)
    return picture


def chinese():
    picture, draw = page(800, 520)
    for row, text in enumerate(
        ["上海市图书馆开放时间", "星期一至星期五：上午九点到下午五点", "请保持安静，谢谢合作", "电话：021-6445 5555"]
    ):
        draw.text((60, 50 + 110 * row), text, INK, font(38, NOTO))
    return picture


def banner():
    """More than eight times as wide as high."""
    picture, draw = page(1000, 70)
    draw.text((30, 14), "The ferry to the island leaves at half past nine", INK, font(34))
    return picture


def poster():
    """Larger than what is searched for text, in large letters."""
    picture, draw = page(2600, 1700)
    for row, text in enumerate(["Summer market", "Music and food"]):
        draw.text((200, 300 + 600 * row), text, INK, font(180))
    return picture


PAGES = {page.__name__: page for page in [invoice, turned, chinese, banner, poster]}


def read(engine, data):
    """What RapidOCR reads on a picture, in the form of the plugin's answer."""
    found = engine(data)[0] or []
    return [{"text": text, "score": round(score, 4), "box": box} for box, text, score in found]


def compare(url, pictures):
    engine, differing = RapidOCR(), 0
    for picture in pictures:
        data = Path(picture).read_bytes()
        with urllib.request.urlopen(urllib.request.Request(url, data, method="POST")) as answer:
            lines = json.load(answer)["lines"]
        answered, expected = ([line["text"] for line in some] for some in (lines, read(engine, data)))
        if answered != expected:
            differing += 1
            print(f"{picture}:\n  the server: {answered}\n  RapidOCR:   {expected}")
    print(f"{len(pictures)} pictures, {differing} of them read otherwise")


def main():
    if sys.argv[1] == "--compare":
        return compare(sys.argv[2], sys.argv[3:])
    engine, golden = RapidOCR(), {}
    (HERE / "samples").mkdir(exist_ok=True)
    for name, render in PAGES.items():
        path = HERE / f"samples/{name}.png"
        render().convert("P", palette=Image.Palette.ADAPTIVE, colors=32).convert("RGB").save(path, optimize=True)
        golden[path.name] = read(engine, path.read_bytes())
    for name in FETCHED:
        golden[name] = read(engine, (Path(sys.argv[1]) / name).read_bytes())
    for name, lines in golden.items():
        print(f"{name}: {[line['text'] for line in lines]}")
    text = json.dumps(golden, ensure_ascii=False)
    (HERE / "golden.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
