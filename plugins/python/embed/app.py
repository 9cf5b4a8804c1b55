"""Texts in, their embeddings out (models/embed/README.md). Two forms of request are understood:

- `{"texts": ["..", ..], "norm": false}` gives `{"vectors": [[..], ..]}`; with `"norm": true` the
  vectors have length 1;
- what OpenAI's clients send, `{"input": "..", "model": ".."}`, gives OpenAI's answer. Its vectors
  have length 1. `input` may be a list of texts, and `encoding_format` `base64`.

The host makes the tokens, as the asset `tokenizer.json` says. Texts and tokens do not pass through
the plugin.
"""

from collections.abc import Sequence
from typing import Any

from gristmill_plugin import (
    Blob,
    Context,
    Dtype,
    InvalidInput,
    Outputs,
    Prepared,
    Processor,
    Request,
    Response,
    Tensor,
    Tokenizer,
    Unprocessable,
    export,
    json,
)
from gristmill_plugin import numpy as np

TOKENIZER = Tokenizer("tokenizer.json")
# What OpenAI's answer names as the model.
MODEL = "wordllama-l2-supercat-256"
# Numbers of a vector, and the bytes of each.
WIDTH, NUMBER_BYTES = 256, 4
# The limits of a request: those of OpenAI for its texts and the tokens of a text. All texts are
# padded to the longest, so the last one bounds the memory.
TEXTS_MAX, TOKENS_MAX, PADDED_MAX = 2048, 8192, 1 << 19


@export
class Embed(Processor):
    def preprocess(self, context: Context, request: Request) -> Prepared:
        name, texts, asked = texts_of(request)
        # As WordLlama encodes: no token for the begin of a text.
        tokens = TOKENIZER.encode(texts, add_special_tokens=False)
        check_lengths(name, tokens.lengths)
        inputs = {"input_ids": tokens.ids, "attention_mask": tokens.attention_mask}
        return Prepared(inputs, json.dumps({**asked, "tokens": sum(tokens.lengths)}))

    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:
        asked = json.loads(state)
        vectors = outputs.tensor("vectors", [None, WIDTH])
        if asked["norm"]:
            vectors = np.normalize(np.asarray(vectors))
        if asked["form"] == "plain":
            return Response.json({"vectors": vectors})
        rows = in_base64(vectors) if asked["form"] == "base64" else vectors
        data = [
            {"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": asked["tokens"], "total_tokens": asked["tokens"]}
        return Response.json({"object": "list", "data": data, "model": MODEL, "usage": usage})


def texts_of(request: Request) -> tuple[str, Tensor, dict[str, Any]]:
    """The texts, the name that the client has for them, and what is asked for."""
    try:
        name, texts = "texts", request.json_tensor("/texts", Dtype.STRING)
    except InvalidInput:
        if request.json("/texts", None) is not None:
            raise
        name, texts = "input", request.json_tensor("/input", Dtype.STRING)
    asked = plain(request) if name == "texts" else openai(request)
    if texts.shape == () and name == "input":
        texts = Tensor.stack([texts])
    if len(texts.shape) != 1:
        raise InvalidInput(f"{name} is not a list of texts")
    [count] = texts.shape
    if not 1 <= count <= TEXTS_MAX:
        raise Unprocessable(f"{name} has {count} texts; a request may have 1 to {TEXTS_MAX}")
    return name, texts, asked


def plain(request: Request) -> dict[str, Any]:
    norm = request.json("/norm", False)
    if not isinstance(norm, bool):
        raise InvalidInput(f"norm is {norm!r}, not true or false")
    return {"form": "plain", "norm": norm}


def openai(request: Request) -> dict[str, Any]:
    # Some clients write null for what is not set.
    width = request.json("/dimensions", None)
    if width not in (None, WIDTH):
        raise Unprocessable(f"dimensions is {width!r}; this model's vectors have {WIDTH}")
    form = request.json("/encoding_format", None)
    if form not in (None, "float", "base64"):
        raise InvalidInput(f'encoding_format is {form!r}, not "float" or "base64"')
    return {"form": form or "float", "norm": True}


def check_lengths(name: str, lengths: Sequence[int]) -> None:
    """Refuse texts that are too long. Cut off they would be other texts."""
    length = max(lengths)
    at = lengths.index(length)
    if length > TOKENS_MAX:
        raise Unprocessable(f"{name}/{at} has {length} tokens; a text may have {TOKENS_MAX}")
    padded = len(lengths) * length
    if padded > PADDED_MAX:
        raise Unprocessable(
            f"{len(lengths)} texts as long as {name}/{at}, the longest, which has {length} tokens, "
            f"would make {padded} tokens; a request may have {PADDED_MAX}: send long texts apart"
        )


def in_base64(vectors: np.ndarray) -> list[Blob]:
    """The rows' elements, little-endian, for the host to write in base64."""
    data = Blob.from_bytes(vectors.tensor().tobytes())
    length = WIDTH * NUMBER_BYTES
    return [data.slice(start, length) for start in range(0, len(data), length)]
