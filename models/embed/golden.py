"""Record the vectors that WordLlama gives for texts of many kinds.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install -r models/embed/golden-requirements.txt
    /tmp/golden/bin/python models/embed/golden.py

It writes golden.json: texts, each so many `times`, with their number of tokens and their vector, in base64 as float32.
With --compare URL it writes nothing, and compares the answers of a server to the lines of files with WordLlama's:

    /tmp/golden/bin/python models/embed/golden.py --compare http://127.0.0.1:8080/v1/demo/infer/embeddings FILES..
"""

import base64
import json
import sys
import urllib.request
from pathlib import Path

import numpy as np
import wordllama

TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "the quick brown fox",
    "",
    " ",
    "  two spaces  before, between  and after \t\r\n",
    "42 pounds, 3.14159, 1e-7; C++ != C#: foo_bar(x[0])",
    "naïve café: composed \u00e9, combined e\u0301, three marks a\u0323\u0302\u0301",
    "Z\u0335\u0322\u0301a\u0336\u0327\u0302l\u0337\u0328\u0303g\u0338\u0321\u0304o\u0334\u0329\u0306",
    "東京都の図書館は午前九時に開きます。",
    "星期一至星期五：上午九点到下午五点",
    "नमस्ते दुनिया, สวัสดีชาวโลก, שלום עולם, مرحبا بالعالم",
    "👩‍👩‍👧‍👦 🇫🇷 🏳️‍🌈 😀👍🏽",
    "<s>a text with special tokens</s> <unk>",
    "no\x00control\x1bcharacters \ufeff\ufffd \U0010ffff",
]
LONG = [("All work and no play makes Jack a dull boy. ", 500), ("漢", 1000)]
# Texts of a request, and the largest difference of an element: float32 is summed in another order.
AT_A_TIME, TOLERANCE = 64, 5e-5


def load():
    # The package looks for its tokenizer in another folder than its own, and would download it.
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def compare(url, files):
    engine, count, largest = load(), 0, 0.0
    texts = [line for path in files for line in Path(path).read_text(encoding="utf-8").splitlines()]
    for start in range(0, len(texts), AT_A_TIME):
        some = texts[start : start + AT_A_TIME]
        for norm in (False, True):
            body = json.dumps({"texts": some, "norm": norm}).encode()
            with urllib.request.urlopen(urllib.request.Request(url, body)) as answer:
                vectors = np.array(json.load(answer)["vectors"], np.float32)
            # WordLlama divides by 0 for a text without tokens.
            with np.errstate(invalid="ignore"):
                expected = np.nan_to_num(engine.embed(some, norm=norm))
            differences = np.abs(vectors - expected).max(axis=1)
            largest = max(largest, float(differences.max()))
            for text in np.array(some)[differences > TOLERANCE]:
                count += 1
                print(f"{text!r} has another vector, norm={norm}")
    print(f"{len(texts)} texts, {count} other vectors; the largest difference is {largest}")


def main():
    if sys.argv[1:2] == ["--compare"]:
        return compare(sys.argv[2], sys.argv[3:])
    engine, cases = load(), []
    for text, times in [*((text, 1) for text in TEXTS), *LONG]:
        [vector], [encoded] = engine.embed(text * times), engine.tokenize(text * times)
        vector = base64.b64encode(vector.astype("<f4").tobytes()).decode()
        cases.append({"text": text, "times": times, "tokens": len(encoded.ids), "vector": vector})
    lines = ",\n".join(json.dumps(case) for case in cases)
    Path(__file__).with_name("golden.json").write_text(f"[{lines}]\n")
    print(f"{len(cases)} texts")


if __name__ == "__main__":
    main()
