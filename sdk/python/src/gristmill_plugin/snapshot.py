"""What makes the first call of an instance fast.

The component's memory is stored when the plugin is built, and each fresh instance begins with it.
An instance pays for each page of it that it touches, and for what Python learns about code that
runs for the first time. So both is done here, before the memory is stored.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from itertools import cycle
from typing import Any

from . import assets, host, image, json, log, models, store, tables
from . import numpy as np
from .finalizer import Finalizer
from .host import arrays, tensors, types
from .host import image as host_image
from .host import keep as host_keep
from .host import tokenizer as host_tokenizer
from .kept import kept
from .outputs import Outputs, Prepared
from .request import Context, Request
from .response import Records, Response
from .tensor import Dtype, Tensor, shortest_float32
from .tokenizer import Tokenizer

#: Python has learnt all about a function after fewer calls.
_ROUNDS = 16

#: Larger blocks of free memory are rare.
_LARGEST_HOLE = 8 << 10

#: Free memory in one piece, for the calls: an instance that has grown is not used again.
_FREE_BYTES = 2 << 20

_kept: list[object] = []

_Exported = Callable[..., Any]


class _Sample:
    """Calls of the SDK as most plugins make them."""

    def preprocess(self, context: Context, request: Request) -> Prepared:
        if request.content_type == "multipart/form-data":
            body = request.file("image").body
        else:
            body = request.parts[0].body if request.query.get("part") else request.body
        picture = image.Pixels.decode(body, image.Color.GRAY)
        (luma,) = picture.statistics()
        pixels = picture.resize(28, 28).to_tensor(mean=[luma.mean], std=[0.5])
        photo = image.Pixels.decode_resized(request.body, shorter=32).center_crop(28, 28)
        shown = photo.resize_shorter(28).letterbox(28, 28).pixels.crop(0, 0, 28, 28)
        values = Tensor.from_values([1, 2], Dtype.FLOAT32, request.json()["values"])
        rows = request.json_tensor("/rows", keys=["a", "b"])
        apart = np.asarray(rows) - np.mean(rows, axis=0)
        scaled = np.where(apart[:, 1:] > 0, apart, 0.5) / (apart.std() + 1)
        ids = request.json_tensor("/ids", Dtype.INT64)
        names = request.json_tensor("/names", Dtype.STRING, keys=["id"])
        user = store.get("features", f"user:{names.strings()[0]}")
        others = store.gather("features", ids, 2, prefix="product:")
        assert user is not None and context.settings.get("table") is None
        more = [tables.gather("prices.csv", ids, 2), store.gather("features", names.strings(), 2)]
        tokens = Tokenizer().encode(names, add_special_tokens=False)
        more += [Tensor.from_bytes([1, 2], Dtype.FLOAT32, user), tokens.ids, tokens.attention_mask]
        inputs = {"pixels": pixels, "values": values, "rows": rows, "scaled": scaled}
        inputs |= {f"more-{at}": one for at, one in enumerate([*more, others])}
        size = len(request.json_blob("/image"))
        count = request.json("/count", rows.shape[0])
        state = json.dumps({"rows": count, "bytes": size, "ids": len(ids.tobytes())})
        return Prepared(inputs, state, keep={"picture": picture, "shown": shown})

    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:
        labels = assets.text("labels.txt").splitlines()
        logits = outputs["output"]
        assert logits.shape == (1, len(labels)) and kept("picture")
        probabilities = outputs.tensor("output", [None, 2]).softmax()
        top = [
            {"label": labels[found.index], "probability": shortest_float32(found.value)}
            for found in probabilities.top_k(2)
        ]
        top.append({"label": logits.argmax()[0].index, "probability": 0.5})
        array = np.asarray(probabilities)
        best = array.max(axis=1)
        top.append({"label": int(best.argmax()), "probability": best.tolist()[0]})
        ids = np.frombuffer(bytes(16), np.int64)
        scores = np.asarray(outputs.tensor("output", [1, ids.size])).ravel()
        order = np.argsort(scores, descending=True)
        items = Records(id=np.take(ids, order), score=np.take(scores, order))
        rows = json.loads(state)["rows"] if state else None
        view = outputs.view("output", [rows, 2])
        names = Tensor.from_bytes([2], Dtype.STRING, b"\1\0\0\0a\1\0\0\0b").strings()
        scored = sorted(zip(names, view.shortest(), strict=True), reverse=True)
        values = [{"id": name, "score": score} for name, score in scored]
        if state:
            return Response.json({**top[0], "top": top, "values": values + view.values.tolist()})
        answer = {"probabilities": probabilities, "items": items, "vectors": np.normalize(array)}
        return Response.json(answer)

    def handle(self, context: Context, request: Request) -> Response:
        rows = request.json_tensor("/rows")
        first = models.infer("first", {"input": rows}).tensor("output", [None, 2])
        runs = [models.Run("second", {"input": first}), models.Run("third", {"input": rows})]
        found = [one for one in models.infer_all(runs) if isinstance(one, Outputs)]
        return Response.json({"outputs": [outputs["output"] for outputs in found]})


def learn(preprocess_of: _Exported, postprocess_of: _Exported, handle_of: _Exported) -> None:
    """Run the SDK's code, with answers in place of the host's.

    The arguments make the component's exports of a plugin.
    """
    sample = _Sample()
    preprocess, postprocess = preprocess_of(sample), postprocess_of(sample)
    handle = None if host.models is None else handle_of(sample)
    import componentize_py_runtime as runtime  # type: ignore[import-not-found]
    from componentize_py_types import Ok  # type: ignore[import-not-found]

    answers = _answers(Ok)

    def answer(_: int, arguments: list[Any]) -> object:
        # The function of the bindings that asks the host.
        frame = sys._getframe(1)
        module = frame.f_globals["__name__"].rpartition(".")[2]
        return answers[f"{module}.{frame.f_code.co_qualname}"](arguments)

    call_import = runtime.call_import
    runtime.call_import = answer
    try:
        for _ in range(_ROUNDS):
            preprocess(None, _held(types.Context), _held(types.Request))
            for state in (b'{"rows":1}', b""):
                output = tensors.NamedTensor("output", _held(tensors.Tensor))
                postprocess(None, _held(types.Context), [output], state)
            if handle is not None:
                handle(None, _held(types.Context), _held(types.Request))
            log.flush()
    finally:
        runtime.call_import = call_import


def _answers(ok: Any) -> dict[str, Callable[[list[Any]], object]]:
    """What the host gives to the sample, by the functions of the bindings. `ok` is their class."""

    def one(kind: Any) -> Callable[[list[Any]], object]:
        return lambda _: _held(kind)

    def one_of_result(kind: Any) -> Callable[[list[Any]], object]:
        return lambda _: ok(_held(kind))

    def letterboxed(_: list[Any]) -> object:
        placement = host_image.Placement(1.0, 1.0, 0, 0, 28, 28)
        return ok(host_image.Letterboxed(_held(pixels), placement))

    def encoded(_: list[Any]) -> object:
        ids, mask, kinds = _held(tensor), _held(tensor), _held(tensor)
        return ok(host_tokenizer.Encoded(ids, mask, kinds, [1], None))

    def outputs(_: object = None) -> object:
        return ok([tensors.NamedTensor("output", _held(tensor))])

    def of_dtype(dtype: Dtype) -> object:
        return ok(_held(tensor, _TEXTS if dtype is Dtype.STRING else 0))

    def is_text(arguments: list[Any]) -> bool:
        return bool(arguments[0].handle == _TEXTS)

    def made(arguments: list[Any]) -> object:
        return ok([arrays.Made(_held(tensor, _NUMBER), Dtype.FLOAT32, [1]) for _ in arguments[2]])

    def elements(_: list[Any]) -> object:
        return ok(arrays.Elements(Dtype.FLOAT32, [1], bytes(4)))

    blob, pixels, tensor = types.Blob, host_image.Pixels, tensors.Tensor
    scored = [tensors.Scored(0, 0.75), tensors.Scored(1, 0.25)]
    documents = {"": b'{"values":[1,0.5]}', "/count": None}
    content_types = cycle(["application/json", "image/png", "multipart/form-data"])
    data = {0: bytes(8), _TEXTS: b"\1\0\0\0a\1\0\0\0b", _NUMBER: bytes(4)}
    # All other tensors have two elements.
    return {
        "arrays.evaluate": made,
        "arrays.read": elements,
        "assets.open": one_of_result(blob),
        "image.Pixels.center_crop": one_of_result(pixels),
        "image.Pixels.color": lambda _: image.Color.GRAY,
        "image.Pixels.crop": one_of_result(pixels),
        "image.Pixels.decode": one_of_result(pixels),
        "image.Pixels.decode_resized": one_of_result(pixels),
        "image.Pixels.letterbox": letterboxed,
        "image.Pixels.resize": one_of_result(pixels),
        "image.Pixels.resize_shorter": one_of_result(pixels),
        "image.Pixels.statistics": lambda _: [host_image.ChannelStatistics(0, 255, 127.5)],
        "image.Pixels.to_tensor": one_of_result(tensor),
        "json.document": lambda _: ok(b"{}"),
        "keep.put": lambda _: ok(None),
        "keep.take": lambda _: host_keep.Kept_Pixels(_held(pixels)),
        "models.infer": outputs,
        "models.infer_all": lambda arguments: [outputs() for _ in arguments[0]],
        "store.gather": one_of_result(tensor),
        "store.gather_by": one_of_result(tensor),
        "store.get_many": lambda arguments: ok([_held(blob) for _ in arguments[1]]),
        "tables.gather": one_of_result(tensor),
        "tensors.Tensor.argmax": lambda _: scored,
        "tensors.Tensor.create": lambda arguments: of_dtype(arguments[0]),
        "tensors.Tensor.data": lambda arguments: data[arguments[0].handle],
        "tensors.Tensor.dtype": lambda arguments: (
            Dtype.STRING if is_text(arguments) else Dtype.FLOAT32
        ),
        "tensors.Tensor.shape": lambda _: [1, 2],
        "tensors.Tensor.softmax": one(tensor),
        "tensors.Tensor.top_k": lambda _: scored,
        "tokenizer.encode": encoded,
        "types.Blob.len": lambda _: 3,
        "types.Blob.read": lambda _: b"labels\na",
        "types.Context.settings": lambda _: "{}",
        "types.Request.body": one(blob),
        "types.Request.content_type": lambda _: next(content_types),
        "types.Request.json_blob": one_of_result(blob),
        "types.Request.json_tensor": lambda arguments: of_dtype(arguments[3]),
        "types.Request.json_value": lambda arguments: ok(documents[arguments[1]]),
        "types.Request.parts": lambda _: [types.Part("image", None, None, _held(blob))],
        "types.Request.query": lambda _: [],
    }


#: The handles of a tensor of texts, and of one of a single number.
_TEXTS, _NUMBER = 1, 2


def _held(kind: Any, handle: int = 0) -> Any:
    """An object of the bindings, as the runtime makes them."""
    held = kind.__new__(kind)
    held.handle = handle
    held.finalizer = Finalizer(held, None, 0, 0)
    return held


def settle(keep: Callable[[], None] | None = None) -> None:
    """Prepare the memory that is about to be stored. `keep` looks at the objects in it."""
    gc.collect()
    _fill_holes()
    if keep is not None:
        keep()
    # Objects that exist now are never garbage: without this, a collection would visit all of them.
    gc.freeze()


def _fill_holes() -> None:
    """Let the calls take their memory from one place.

    Importing leaves small holes everywhere. New objects would go there, each to a page that the
    instance has not touched yet. Free holes are in lists, so to free an object beside one would
    touch two more, anywhere.
    """
    end = id(bytes(_FREE_BYTES))
    for size in range(_LARGEST_HOLE, 0, -8):
        while id(block := bytes(size)) < end:
            _kept.append(block)
    # The smallest holes have no place for bytes.
    while id(least := object()) < end:
        _kept.append(least)
