"""What to do about a module that a plugin imports and that is not there."""

from __future__ import annotations

from gristmill_plugin import tracebacks

_TENSORS = (
    "`from gristmill_plugin import numpy as np` has NumPy's functions, which run in the host",
    "sdk/guides/numpy.md",
)
_PICTURES = (
    "Pixels decodes, resizes, crops and normalises pictures in the host",
    "sdk/guides/images.md",
)
_MODEL = (
    "the model runs in the host: export it as ONNX, push it, and name it in the pipeline",
    "models/README.md",
)
_SERVICES = ("`from gristmill_plugin import http` sends requests", "host/docs/outgoing-http.md")
_TEXTS = ("a plugin splits texts itself, or the model does it", "sdk/guides/text.md")

#: Packages with compiled parts, what replaces each, and where to read about it.
_COMPILED = {
    "PIL": _PICTURES,
    "catboost": _MODEL,
    "cv2": _PICTURES,
    "joblib": _MODEL,
    "lightgbm": _MODEL,
    "numpy": _TENSORS,
    "onnxruntime": _MODEL,
    "orjson": ("request.json and Response.json", "sdk/python/README.md"),
    "pandas": _TENSORS,
    "pydantic": ("checks in Python; raise InvalidInput with what is wrong", "sdk/python/README.md"),
    "scipy": _TENSORS,
    "skimage": _PICTURES,
    "sklearn": _MODEL,
    "tensorflow": _MODEL,
    "tokenizers": _TEXTS,
    "torch": _MODEL,
    "torchvision": _PICTURES,
    "transformers": _TEXTS,
    "xgboost": _MODEL,
}

#: Packages that open connections, and what replaces them.
_CONNECTING = dict.fromkeys(("aiohttp", "httpx", "requests", "urllib3"), _SERVICES)


def explained(error: BaseException) -> str | None:
    """The lines about a module that is missing. None for any other error."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    file, line = tracebacks.place(error)
    package = error.name.partition(".")[0]
    for packages, why in (
        (_COMPILED, "plugins have no packages with compiled parts"),
        (_CONNECTING, "plugins open no connections"),
    ):
        if package not in packages:
            continue
        instead, where = packages[package]
        return (
            f"{file}:{line}: no module named {error.name!r}: {why}\n"
            f"in its place: {instead}\n"
            f"read {where}"
        )
    return (
        f"{file}:{line}: no module named {error.name!r}\n"
        f"name its package in requirements.txt in the plugin's folder, for example {package}"
    )
