"""The same as `app.py`, as people write it with NumPy.

`by_numpy.py body FILE` writes a request. `by_numpy.py COUNT FILE ANSWER` answers it so many times,
prints the median of the milliseconds, and writes the answer.
"""

import json
import statistics
import sys
import time

import numpy as np


def body():
    random = np.random.default_rng(1)
    out = np.zeros((84, 8400), np.float32)
    out[:2] = random.uniform(0, 640, (2, 8400))
    out[2:4] = random.uniform(20, 120, (2, 8400))
    out[4:] = random.uniform(0, 0.2, (80, 8400))
    # 30 objects, each found ten times.
    found = random.choice(8400, 300, replace=False)
    out[4 + random.integers(0, 80, 300), found] = random.uniform(0.3, 0.95, 300)
    for at, place in enumerate(found[30:]):
        out[:4, place] = out[:4, found[at % 30]] + random.uniform(-4, 4, 4)
    return out.tobytes()


def preprocess(data):
    return np.frombuffer(data, np.float32).reshape(1, -1)


def nms(boxes, scores, threshold):
    x1, y1, x2, y2 = boxes.T
    areas = (x2 - x1) * (y2 - y1)
    order = scores.argsort()[::-1]
    keep = []
    while order.size:
        best, rest = order[0], order[1:]
        keep.append(best)
        width = np.maximum(0, np.minimum(x2[best], x2[rest]) - np.maximum(x1[best], x1[rest]))
        height = np.maximum(0, np.minimum(y2[best], y2[rest]) - np.maximum(y1[best], y1[rest]))
        shared = width * height
        order = rest[shared / (areas[best] + areas[rest] - shared) <= threshold]
    return np.array(keep)


def postprocess(output):
    out = output.reshape(84, 8400).T
    scores = out[:, 4:].max(axis=1)
    keep = scores > 0.25
    out, scores = out[keep], scores[keep]
    classes = out[:, 4:].argmax(axis=1)
    center, size = out[:, :2], out[:, 2:4]
    boxes = np.concatenate([center - size / 2, center + size / 2], axis=1)
    best = nms(boxes, scores, 0.45)
    return json.dumps(
        {
            "boxes": boxes[best].tolist(),
            "scores": scores[best].tolist(),
            "classes": classes[best].tolist(),
        }
    )


if sys.argv[1] == "body":
    with open(sys.argv[2], "wb") as file:
        file.write(body())
else:
    with open(sys.argv[2], "rb") as file:
        data = file.read()
    times = []
    for _ in range(int(sys.argv[1])):
        began = time.perf_counter()
        answer = postprocess(preprocess(data))
        times.append((time.perf_counter() - began) * 1e3)
    with open(sys.argv[3], "w") as file:
        file.write(answer)
    print(statistics.median(times))
