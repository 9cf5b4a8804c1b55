"""Train the digits CNN on the UCI digits and export it to ONNX."""

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
from jax.scipy.ndimage import map_coordinates
from onnx import TensorProto, helper, numpy_helper

from data import SIDE, load_split, to_inputs

CHANNELS = (8, 16)
FEATURES = CHANNELS[1] * 7 * 7
HIDDEN = 32
CLASSES = 10
MIN_ACCURACY = 0.97

Params = dict[str, jax.Array]


def init_params(key: jax.Array) -> Params:
    """Return He-initialised weights, named as in the exported graph."""
    shapes = {
        "conv1": (CHANNELS[0], 1, 5, 5),
        "conv2": (CHANNELS[1], CHANNELS[0], 3, 3),
        "fc1": (HIDDEN, FEATURES),
        "fc2": (CLASSES, HIDDEN),
    }
    params = {}
    for name, shape in shapes.items():
        key, sub = jax.random.split(key)
        fan_in = int(np.prod(shape[1:]))
        params[f"{name}.weight"] = jax.random.normal(sub, shape) * (2 / fan_in) ** 0.5
        params[f"{name}.bias"] = jnp.zeros(shape[0])
    return params


def forward(params: Params, x: jax.Array) -> jax.Array:
    """Compute logits [N, 10] for images [N, 1, 28, 28]."""

    def conv(x: jax.Array, name: str, stride: int, pad: int) -> jax.Array:
        weight = params[f"{name}.weight"]
        y = jax.lax.conv_general_dilated(x, weight, (stride, stride), [(pad, pad)] * 2)
        return jax.nn.relu(y + params[f"{name}.bias"][:, None, None])

    x = conv(x, "conv1", stride=2, pad=2)
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    x = conv(x, "conv2", stride=1, pad=1)
    x = x.reshape(x.shape[0], -1) @ params["fc1.weight"].T + params["fc1.bias"]
    return jax.nn.relu(x) @ params["fc2.weight"].T + params["fc2.bias"]


def augment_one(key: jax.Array, image: jax.Array) -> jax.Array:
    """Distort one 28x28 image as a photo would: pose, stroke, blur, lighting; stretch to 0..1."""
    keys = iter(jax.random.split(key, 16))

    def uniform(low: float, high: float, shape: tuple[int, ...] = ()) -> jax.Array:
        return jax.random.uniform(next(keys), shape, minval=low, maxval=high)

    angle, shear = uniform(-0.2, 0.2), uniform(-0.15, 0.15)
    scale, shift = uniform(0.55, 1.05) * uniform(0.88, 1.12, (2, 1)), uniform(-2.5, 2.5, (2, 1, 1))
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    matrix = jnp.array([[cos, -sin], [sin + shear, cos]]) / scale
    centre = (SIDE - 1) / 2
    grid = jnp.stack(jnp.meshgrid(jnp.arange(SIDE), jnp.arange(SIDE), indexing="ij")) - centre
    image = map_coordinates(image, list(jnp.einsum("ij,jyx->iyx", matrix, grid - shift) + centre), order=1)

    # A steep curve makes crisp strokes; its threshold sets how thick they are.
    crisp = jax.nn.sigmoid((image - uniform(0.3, 0.65)) * uniform(6, 24))
    image = jnp.where(uniform(0, 1) < 0.5, crisp, image ** uniform(0.7, 1.4))

    blurred = jax.scipy.signal.convolve(image, jnp.full((3, 3), 1 / 9), mode="same")
    blur = uniform(0, 1)
    image = (1 - blur) * image + blur * blurred

    light = jnp.tensordot(uniform(-0.08, 0.08, (2,)), grid / centre, axes=1)
    image = image + light + uniform(0, 0.05) * jax.random.normal(next(keys), image.shape)
    image = image - image.min()
    return image / image.max()


@jax.jit
def augment(key: jax.Array, images: jax.Array) -> jax.Array:
    """Distort a batch [N, 1, 28, 28], each image its own way."""
    keys = jax.random.split(key, images.shape[0])
    return jax.vmap(augment_one)(keys, images[:, 0])[:, None]


def train(x: np.ndarray, y: np.ndarray, seed: int, epochs: int, batch: int) -> Params:
    """Fit the network with Adam and a cosine schedule; print the loss as it goes."""
    key, init_key = jax.random.split(jax.random.key(seed))
    params = init_params(init_key)
    steps = len(x) // batch
    optimizer = optax.adamw(optax.cosine_decay_schedule(4e-3, epochs * steps), weight_decay=1e-3)
    state = optimizer.init(params)

    def loss_of(params: Params, images: jax.Array, labels: jax.Array) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(forward(params, images), labels).mean()

    @jax.jit
    def step(params: Params, state: optax.OptState, images: jax.Array, labels: jax.Array):
        loss, grads = jax.value_and_grad(loss_of)(params, images, labels)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    order = np.random.default_rng(seed)
    for epoch in range(1, epochs + 1):
        total = 0.0
        for rows in np.split(order.permutation(len(x))[: steps * batch], steps):
            key, sub = jax.random.split(key)
            params, state, loss = step(params, state, augment(sub, x[rows]), y[rows])
            total += float(loss)
        if epoch % 10 == 0 or epoch == epochs:
            print(f"epoch {epoch:3d}/{epochs}  loss {total / steps:.4f}", flush=True)
    return params


def export(params: Params, path: Path) -> None:
    """Write the network as ONNX (opset 17) with a dynamic batch dimension."""
    nodes = [
        helper.make_node("Conv", ["input", "conv1.weight", "conv1.bias"], ["c1"], strides=[2, 2], pads=[2] * 4),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "conv2.weight", "conv2.bias"], ["c2"], strides=[1, 1], pads=[1] * 4),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("Flatten", ["r2"], ["flat"], axis=1),
        helper.make_node("Gemm", ["flat", "fc1.weight", "fc1.bias"], ["h1"], transB=1),
        helper.make_node("Relu", ["h1"], ["r3"]),
        helper.make_node("Gemm", ["r3", "fc2.weight", "fc2.bias"], ["output"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 1, SIDE, SIDE])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["N", CLASSES])],
        [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in params.items()],
    )
    model = helper.make_model(
        graph, producer_name="gristmill", ir_version=8, opset_imports=[helper.make_opsetid("", 17)]
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def accuracy(session: ort.InferenceSession, x: np.ndarray, y: np.ndarray) -> float:
    """Return the share of images whose largest logit is the right class."""
    (logits,) = session.run(["output"], {"input": np.asarray(x)})
    return float((logits.argmax(axis=1) == y).mean())


def main() -> None:
    """Train, export, measure the exported file, and fail below the required accuracy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("digits.onnx"), help="file to write")
    parser.add_argument("--seed", type=int, default=7, help="seed of weights, batches and distortions")
    parser.add_argument("--epochs", type=int, default=120, help="passes over the training images")
    parser.add_argument("--batch", type=int, default=64, help="images per training step")
    args = parser.parse_args()

    train_digits, held_digits, train_y, held_y = load_split()
    train_x, held_x = to_inputs(train_digits), to_inputs(held_digits)
    print(f"{len(train_x)} training images, {len(held_x)} held out", flush=True)

    export(train(train_x, train_y, args.seed, args.epochs, args.batch), args.out)
    session = ort.InferenceSession(args.out, providers=["CPUExecutionProvider"])
    clean = accuracy(session, held_x, held_y)
    distorted = accuracy(session, augment(jax.random.key(args.seed + 1), held_x), held_y)
    print(f"wrote {args.out.name}, {args.out.stat().st_size} bytes")
    print(f"held-out accuracy: {clean:.4f}")
    print(f"held-out accuracy, distorted as in training: {distorted:.4f}")
    if clean < MIN_ACCURACY:
        sys.exit(f"held-out accuracy is below {MIN_ACCURACY}")


if __name__ == "__main__":
    main()
