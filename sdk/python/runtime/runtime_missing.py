"""What to do about a module that a plugin imports and that is not there."""

from __future__ import annotations

import sys

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


#: What to do about a time zone that is not there.
_TIME_ZONES = (
    "name tzdata in requirements.txt in the plugin's folder, and make each ZoneInfo at the level of "
    "the module"
)


def explained(error: BaseException) -> str | None:
    """The lines about a module or a time zone that is missing. None for any other error."""
    if type(error).__name__ == "ZoneInfoNotFoundError":
        return f"{tracebacks.format_exception(error)}\n{_TIME_ZONES}"
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    file, line = tracebacks.place(error)
    missing = f"{file}:{line}: no module named {error.name!r}"
    replaced = _replaced(error.name)
    if replaced is not None:
        why, instead, where = replaced
        return f"{missing}: {why}\nin its place: {instead}\nread {where}"
    package = error.name.partition(".")[0]
    if package in sys.stdlib_module_names:
        return f"{missing}: the sandbox's Python does not have this part of the standard library"
    return (
        f"{missing}\n"
        f"name its package in requirements.txt in the plugin's folder, for example {package}"
    )


def missing_in_call(name: str) -> Exception:
    """The error of an import within a call, with the place in the plugin that asks for it."""
    package, _, rest = name.partition(".")
    replaced = _replaced(name)
    error: Exception
    # Python makes an error without the cure of one that says that a module is not there.
    if package == "encodings" and rest:
        error = LookupError(
            f"unknown encoding: {rest}; if Python has it, a call has no files: "
            f"codecs.lookup({rest!r}) at the top of the plugin's module"
        )
    elif package == "tzdata":
        error = LookupError(f"a call has no files with time zones: {_TIME_ZONES}")
    elif replaced is not None:
        why, instead, where = replaced
        text = f"{why}; in its place: {instead}; read {where}"
        error = ModuleNotFoundError(f"no module named {name!r}: {text}", name=name)
    else:
        text = f"a call has no files: import {name} at the top of the plugin's module, too"
        error = ModuleNotFoundError(f"no module named {name!r}: {text}", name=name)
    frame = sys._getframe(1)
    # The frames of this runtime, of Python's import and of the library have such names.
    while frame.f_back is not None and frame.f_code.co_filename.startswith(("/", "<frozen")):
        frame = frame.f_back
    error.operation_place = (frame.f_code.co_filename, frame.f_lineno)  # type: ignore[attr-defined]
    return error


def _replaced(name: str) -> tuple[str, str, str] | None:
    """Why no plugin has the package, what is in its place, and where to read about that."""
    package = name.partition(".")[0]
    for packages, why in (
        (_COMPILED, "plugins have no packages with compiled parts"),
        (_CONNECTING, "plugins open no connections"),
    ):
        if package in packages:
            return (why, *packages[package])
    return None
