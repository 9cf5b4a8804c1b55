"""Train the recommender, a small network in NumPy, on made-up clicks; export it to ONNX; record golden answers."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

# Read when ONNX Runtime is loaded; without it 1.31 writes to the home directory.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from sklearn.metrics import roc_auc_score

from features import FEATURES, products, users

HERE = Path(__file__).parent
WIDTHS = (2 * FEATURES, 64, 32, 1)
WORLD_SEED, TRAIN_SEED, HELD_OUT_SEED, WEIGHTS_SEED = 61, 62, 63, 64
MIN_AUC = 0.8

# The first 12 features of a user are tastes, and of a product topics. Then a user has the weight of
# price, freshness, popularity and rating, and a product these four.
FACTORS = 12

Params = list[np.ndarray]


class Clicks(NamedTuple):
    """Impressions: the users' and the products' features [N, 16], clicked or not, and the hidden chance [N]."""

    user: np.ndarray
    product: np.ndarray
    clicked: np.ndarray
    chance: np.ndarray


def utility(user: np.ndarray, product: np.ndarray) -> np.ndarray:
    """The hidden utility [N]: tastes meet topics, and what the user looks at meets what the product has."""
    mixing = np.random.default_rng(WORLD_SEED).normal(size=(2, FACTORS, 4)) / FACTORS**0.5
    meets = np.tanh((user[:, :FACTORS] @ mixing[0]) * (product[:, :FACTORS] @ mixing[1])).sum(axis=1)
    sensitive, curious, social, picky = np.tanh(user[:, FACTORS:]).T
    price, fresh, popular, rating = product[:, FACTORS:].T
    return (
        1.4 * meets
        - (0.9 + 0.6 * sensitive) * np.maximum(price, -0.5)
        + (0.3 + 0.7 * curious) * np.tanh(fresh)
        + (0.6 + 0.5 * social) * popular
        + (0.8 + 0.5 * picky) * np.minimum(rating, 1)
    )


def generate(rows: int, seed: int) -> Clicks:
    """Draw impressions."""
    rng = np.random.default_rng(seed)
    user, product = (rng.normal(size=(rows, FEATURES)).astype(np.float32) for _ in range(2))
    chance = 1 / (1 + np.exp(-(2 * utility(user, product) + rng.normal(scale=0.5, size=rows) - 1)))
    return Clicks(user, product, (rng.random(rows) < chance).astype(np.float32), chance)


def forward(params: Params, user: np.ndarray, product: np.ndarray) -> list[np.ndarray]:
    """What each layer gives: the last one is the chance of a click [N, 1]."""
    layers = [np.concatenate([user, product], axis=1)]
    for at in range(0, len(params), 2):
        z = layers[-1] @ params[at] + params[at + 1]
        is_last = at + 2 == len(params)
        layers.append(1 / (1 + np.exp(-z)) if is_last else np.maximum(z, 0))
    return layers


def gradients(params: Params, layers: list[np.ndarray], clicked: np.ndarray) -> Params:
    """The gradients of the mean binary cross-entropy."""
    wrong = (layers[-1] - clicked[:, None]) / len(clicked)
    found: Params = []
    for at in reversed(range(len(params) // 2)):
        found = [layers[at].T @ wrong, wrong.sum(axis=0), *found]
        wrong = (wrong @ params[2 * at].T) * (layers[at] > 0)
    return found


def train(clicks: Clicks, epochs: int, batch: int) -> Params:
    """Fit the network with Adam and a cosine schedule."""
    rng = np.random.default_rng(WEIGHTS_SEED)
    params: Params = []
    for fan_in, fan_out in zip(WIDTHS, WIDTHS[1:]):
        weights = rng.normal(size=(fan_in, fan_out)) * (2 / fan_in) ** 0.5
        params += [weights.astype(np.float32), np.zeros(fan_out, np.float32)]
    first = [np.zeros_like(param) for param in params]
    second = [np.zeros_like(param) for param in params]
    steps = epochs * (len(clicks.clicked) // batch)
    step = 0
    for epoch in range(epochs):
        order = rng.permutation(len(clicks.clicked))
        for rows in np.split(order[: len(order) // batch * batch], len(order) // batch):
            layers = forward(params, clicks.user[rows], clicks.product[rows])
            step += 1
            rate = 1.5e-3 * (1 + np.cos(np.pi * step / steps))
            for at, gradient in enumerate(gradients(params, layers, clicks.clicked[rows])):
                first[at] += 0.1 * (gradient - first[at])
                second[at] += 0.001 * (gradient**2 - second[at])
                change = first[at] / (1 - 0.9**step) / (np.sqrt(second[at] / (1 - 0.999**step)) + 1e-8)
                params[at] -= np.float32(rate) * change
        print(f"epoch {epoch + 1:2d}/{epochs}", flush=True)
    return params


def export(params: Params, path: Path) -> None:
    """Write the network as ONNX (opset 17) with a dynamic batch dimension."""
    names = [f"fc{at // 2 + 1}.{'bias' if at % 2 else 'weight'}" for at in range(len(params))]
    nodes, x = [helper.make_node("Concat", ["user", "product"], ["x"], axis=1)], "x"
    for at in range(0, len(params), 2):
        layer, is_last = at // 2 + 1, at + 2 == len(params)
        output = "score" if is_last else f"a{layer}"
        nodes.append(helper.make_node("Gemm", [x, names[at], names[at + 1]], [f"z{layer}"]))
        nodes.append(helper.make_node("Sigmoid" if is_last else "Relu", [f"z{layer}"], [output]))
        x = output
    graph = helper.make_graph(
        nodes,
        "recommend",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", FEATURES]) for name in ("user", "product")],
        [helper.make_tensor_value_info("score", TensorProto.FLOAT, ["N", 1])],
        [numpy_helper.from_array(param, name) for param, name in zip(params, names)],
    )
    model = helper.make_model(
        graph, producer_name="gristmill", ir_version=8, opset_imports=[helper.make_opsetid("", 17)]
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def golden(params: Params) -> dict:
    """Users, 200 products, and the order of some of them with their scores, as NumPy computes them.

    A product that has no features counts as one whose features are all 0.
    """
    known_users = {number: np.array(row, np.float32) for number, row in users(3)}
    known_products = {number: np.array(row, np.float32) for number, row in products(200)}
    cases = []
    for user, ids in ((1, range(1, 51)), (2, range(200, 100, -2)), (3, [7]), (1, [3, 10**12, 4, 3])):
        features = np.stack([known_products.get(number, np.zeros(FEATURES, np.float32)) for number in ids])
        scores = forward(params, np.tile(known_users[user], (len(ids), 1)), features)[-1][:, 0]
        ranked = sorted(zip(ids, scores), key=lambda each: -each[1])
        items = [{"productId": number, "score": float(str(np.float32(score)))} for number, score in ranked]
        cases.append({"request": {"userId": user, "productIds": list(ids)}, "items": items})
    listed = lambda known: {str(number): [float(str(value)) for value in row] for number, row in known.items()}
    return {"users": listed(known_users), "products": listed(known_products), "cases": cases}


def main() -> None:
    """Train, export, measure the exported file, record golden answers, and fail below the required AUC."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000, help="training impressions to generate")
    parser.add_argument("--held-out-rows", type=int, default=50_000, help="held-out impressions to generate")
    parser.add_argument("--epochs", type=int, default=12, help="passes over the training impressions")
    parser.add_argument("--batch", type=int, default=512, help="impressions per training step")
    args = parser.parse_args()

    held = generate(args.held_out_rows, HELD_OUT_SEED)
    params = train(generate(args.rows, TRAIN_SEED), args.epochs, args.batch)
    path = HERE / "recommend.onnx"
    export(params, path)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    (score,) = session.run(["score"], {"user": held.user, "product": held.product})
    off = np.abs(score - forward(params, held.user, held.product)[-1]).max()
    auc = roc_auc_score(held.clicked, score[:, 0])
    print(f"wrote {path.name}, {path.stat().st_size} bytes; it is within {off:.1e} of NumPy")
    print(f"held-out AUC: {auc:.4f}")
    print(f"held-out AUC of the hidden chance itself (the ceiling): {roc_auc_score(held.clicked, held.chance):.4f}")
    print(f"held-out mean score: {score.mean():.4f}, mean clicks: {held.clicked.mean():.4f}")
    if auc < MIN_AUC:
        sys.exit(f"held-out AUC is below {MIN_AUC}")
    (HERE / "golden.json").write_text(json.dumps(golden(params), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
