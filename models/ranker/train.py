"""Train the click ranker, a small MLP, on generated clicks and export it to ONNX."""

import argparse
import os
import sys
from pathlib import Path

# Read when ONNX Runtime is loaded; without it 1.31 writes to the home directory.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime as ort
import optax
from onnx import TensorProto, helper, numpy_helper
from sklearn.metrics import roc_auc_score

from data import FEATURES, HELD_OUT_SEED, TRAIN_SEED, generate

WIDTHS = (FEATURES, 64, 64, 1)
LAYERS = len(WIDTHS) - 1
MIN_AUC = 0.8

Params = dict[str, jax.Array]


def init_params(key: jax.Array) -> Params:
    """Return He-initialised weights, named as in the exported graph."""
    params = {}
    for i, sub in enumerate(jax.random.split(key, LAYERS), start=1):
        fan_in, fan_out = WIDTHS[i - 1], WIDTHS[i]
        params[f"fc{i}.weight"] = jax.random.normal(sub, (fan_out, fan_in)) * (2 / fan_in) ** 0.5
        params[f"fc{i}.bias"] = jnp.zeros(fan_out)
    return params


def forward(params: Params, x: jax.Array) -> jax.Array:
    """Compute click logits [N] for features [N, 32]."""
    for i in range(1, LAYERS + 1):
        x = x @ params[f"fc{i}.weight"].T + params[f"fc{i}.bias"]
        if i < LAYERS:
            x = jax.nn.relu(x)
    return x[:, 0]


def train(x: np.ndarray, clicked: np.ndarray, seed: int, epochs: int, batch: int) -> Params:
    """Fit the network with Adam and a cosine schedule; print the loss as it goes."""
    params = init_params(jax.random.key(seed))
    steps = len(x) // batch
    optimizer = optax.adamw(optax.cosine_decay_schedule(3e-3, epochs * steps), weight_decay=1e-3)
    state = optimizer.init(params)

    def loss_of(params: Params, x: jax.Array, clicked: jax.Array) -> jax.Array:
        return optax.sigmoid_binary_cross_entropy(forward(params, x), clicked).mean()

    @jax.jit
    def step(params: Params, state: optax.OptState, x: jax.Array, clicked: jax.Array):
        loss, grads = jax.value_and_grad(loss_of)(params, x, clicked)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    order = np.random.default_rng(seed)
    for epoch in range(1, epochs + 1):
        total = 0.0
        for rows in np.split(order.permutation(len(x))[: steps * batch], steps):
            params, state, loss = step(params, state, x[rows], clicked[rows])
            total += float(loss)
        print(f"epoch {epoch:2d}/{epochs}  loss {total / steps:.4f}", flush=True)
    return params


def export(params: Params, path: Path) -> None:
    """Write the network, with a closing Sigmoid, as ONNX (opset 17) with a dynamic batch dimension."""
    nodes, x = [], "input"
    for i in range(1, LAYERS + 1):
        nodes.append(helper.make_node("Gemm", [x, f"fc{i}.weight", f"fc{i}.bias"], [f"z{i}"], transB=1))
        x = f"a{i}" if i < LAYERS else "output"
        nodes.append(helper.make_node("Relu" if i < LAYERS else "Sigmoid", [f"z{i}"], [x]))
    graph = helper.make_graph(
        nodes,
        "ranker",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", FEATURES])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["N", 1])],
        [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in params.items()],
    )
    model = helper.make_model(
        graph, producer_name="gristmill", ir_version=8, opset_imports=[helper.make_opsetid("", 17)]
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main() -> None:
    """Train, export, measure the exported file, and fail below the required AUC."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("ranker.onnx"), help="file to write")
    parser.add_argument("--seed", type=int, default=7, help="seed of weights and batches (the data has its own)")
    parser.add_argument("--rows", type=int, default=200_000, help="training impressions to generate")
    parser.add_argument("--held-out-rows", type=int, default=50_000, help="held-out impressions to generate")
    parser.add_argument("--epochs", type=int, default=12, help="passes over the training impressions")
    parser.add_argument("--batch", type=int, default=512, help="impressions per training step")
    args = parser.parse_args()

    data, held = generate(args.rows, TRAIN_SEED), generate(args.held_out_rows, HELD_OUT_SEED)
    print(f"{args.rows} training impressions, {held.clicked.mean():.3f} of the held-out ones clicked", flush=True)

    export(train(data.features, data.clicked, args.seed, args.epochs, args.batch), args.out)
    session = ort.InferenceSession(args.out, providers=["CPUExecutionProvider"])
    (score,) = session.run(["output"], {"input": held.features})
    auc = roc_auc_score(held.clicked, score[:, 0])
    print(f"wrote {args.out.name}, {args.out.stat().st_size} bytes")
    print(f"held-out AUC: {auc:.4f}")
    print(f"held-out AUC of the hidden chance itself (the ceiling): {roc_auc_score(held.clicked, held.chance):.4f}")
    print(f"held-out mean score: {score.mean():.4f}, mean clicks: {held.clicked.mean():.4f}")
    if auc < MIN_AUC:
        sys.exit(f"held-out AUC is below {MIN_AUC}")


if __name__ == "__main__":
    main()
