"""The requests of `cargo xtask bench jobs`, with the packages of benches/peers/jobs.

    python benches/scenarios/jobs.py photo FOLDER
    python benches/scenarios/jobs.py embed FOLDER
    python benches/scenarios/jobs.py recommend FOLDER REDIS_URL PRODUCTS

`recommend` also sets the features: `user:<id>` and `product:<id>`, packed little-endian float32.
"""

import json
import sys
from pathlib import Path

import numpy as np
import redis
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]

# A real photo, of a cup of coffee, which models/photo/fetch.py has fetched.
PHOTO = ROOT / "target/models/photo/coffee.png"
SMALL, LARGE = (640, 480), (4032, 3024)
# The noise of a phone's sensor, of 255. Without it the enlarged photo would be smooth, and its
# decoding quick.
NOISE = 5.0
ORIENTATION, TURNED_RIGHT = 0x0112, 6

REQUESTS = 32
# Of 5 to 200 tokens.
TEXTS, WORDS_MIN, WORDS_MAX = 8, 5, 128
# Long ones are several tokens.
WORDS = """
the a of and to in is it that for on with as was at by this from have or one had word but not what all were when
your can said there use each which she do how their if will up other about out many then them these so some her would
make like him into time has look two more write go see number no way could people my than first water been call who
oil its now find long down day did get come made may part harbour invoice lantern marble quartz turbine orchard violin
glacier thermostat cinnamon bicycle umbrella telescope parliament chlorophyll refrigerator kaleidoscope antidisestablish
microcontroller photosynthesis 2024 17.5 e-mail co-operate naïve café Zürich
""".split()

USERS, PRODUCTS_OF_REQUEST = 10_000, 50
# The numbers of a user and of a product, as models/recommend/README.md says.
FEATURES = 16
BATCH = 5_000


def photos(folder: Path) -> None:
    photo = Image.open(PHOTO).convert("RGB")
    # Both are 4 to 3.
    width = photo.height * SMALL[0] // SMALL[1]
    left = (photo.width - width) // 2
    photo = photo.crop((left, 0, left + width, photo.height))
    photo.resize(SMALL, Image.Resampling.LANCZOS).save(folder / "small.jpg", quality=90)
    large = np.asarray(photo.resize(LARGE, Image.Resampling.LANCZOS), np.float32)
    noise = np.random.default_rng(44).normal(0, NOISE, (*large.shape[:2], 1)).astype(np.float32)
    large = Image.fromarray(np.clip(large + noise, 0, 255).astype(np.uint8))
    # A phone that is held upright writes the lines of its sensor, and that they are to be turned.
    exif = Image.Exif()
    exif[ORIENTATION] = TURNED_RIGHT
    large.transpose(Image.Transpose.ROTATE_90).save(folder / "phone.jpg", quality=90, subsampling=2, exif=exif)


def texts(folder: Path) -> None:
    random = np.random.default_rng(44)
    for number in range(REQUESTS):
        lengths = random.integers(WORDS_MIN, WORDS_MAX, TEXTS, endpoint=True)
        request = {"texts": [" ".join(random.choice(WORDS, length)) for length in lengths]}
        (folder / f"{number:02}.json").write_text(json.dumps(request), encoding="utf-8")


def features(folder: Path, url: str, products: int) -> None:
    client = redis.Redis.from_url(url)
    random = np.random.default_rng(44)
    for name, count in (("user", USERS), ("product", products)):
        for begin in range(0, count, BATCH):
            rows = random.standard_normal((min(BATCH, count - begin), FEATURES), np.float32).astype("<f4")
            client.mset({f"{name}:{begin + at}": row.tobytes() for at, row in enumerate(rows)})
            if begin % (20 * BATCH) == 0 or begin + BATCH >= count:
                print(f"{min(begin + BATCH, count)} of {count} {name}s", file=sys.stderr, flush=True)
    for number in range(REQUESTS):
        chosen = random.choice(products, PRODUCTS_OF_REQUEST, replace=False)
        request = {"userId": int(random.integers(USERS)), "productIds": chosen.tolist()}
        (folder / f"{number:02}.json").write_text(json.dumps(request))


def main() -> None:
    job, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if job == "photo":
        photos(folder)
    elif job == "embed":
        texts(folder)
    elif job == "recommend":
        url, products = sys.argv[3:]
        features(folder, url, int(products))
    else:
        sys.exit(f"no job {job!r}: there are photo, embed and recommend")


if __name__ == "__main__":
    main()
