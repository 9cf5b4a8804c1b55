"""Misbehaves through CPython and its libraries. `?do=` names the deed, as for the plugin `hostile`.

It is for the model `digits`, which gets a blank picture if nothing ends the deed. The answer is the
number of calls that this instance has begun: 1 in a fresh one.
"""

import os
import re
import sys
import time

from gristmill_plugin import (
    Context,
    Dtype,
    Outputs,
    Prepared,
    Processor,
    Request,
    Response,
    Tensor,
    export,
    log,
)

MEBIBYTE = 1 << 20

# A file of the plugin's folder, in which the build runs.
with open("words.txt") as file:
    WORDS = file.read().strip()


@export
class Hostile(Processor):
    def __init__(self) -> None:
        self.calls = 0

    def preprocess(self, context: Context, request: Request) -> Prepared:
        self.calls += 1
        name = request.query.get("do", "")
        if name not in DEEDS and name not in ANSWERS and name != "":
            raise KeyError(f"there is no deed {name!r}")
        done = DEEDS[name]() if name in DEEDS else None
        if name == "wrong-type":
            return done
        input = done if isinstance(done, Tensor) else blank()
        return Prepared({"input": input}, f"{name} {self.calls}".encode())

    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:
        name, calls = state.decode().split(" ")
        return ANSWERS[name]() if name in ANSWERS else Response.text(calls)


def blank() -> Tensor:
    return Tensor.from_bytes([1, 1, 28, 28], Dtype.FLOAT32, bytes(4 * 28 * 28))


def loop():
    while True:
        pass


def memory():
    held = []
    while True:
        held.append(bytearray(MEBIBYTE))


def stubborn():
    """Takes all memory and does not accept that there is no more."""
    held = []
    while True:
        try:
            held.append(bytearray(MEBIBYTE))
        except BaseException:
            pass


def recurse():
    sys.setrecursionlimit(2**31 - 1)

    def deeper(depth):
        return deeper(depth + 1) + 1

    return deeper(0)


def nest():
    """Recurses in the interpreter's own code."""
    nested = []
    for _ in range(100_000):
        nested = [nested]
    return repr(nested)


def regex():
    """A search in the library's own code, which takes longer than the universe lasts."""
    re.match(r"(a+)+$", "a" * 64 + "b")


def flood(write):
    for _ in range(100_000):
        write("x" * 1000)


def sleep():
    while True:
        time.sleep(3600)


def random():
    while True:
        os.urandom(MEBIBYTE)


def fail():
    raise ValueError(WORDS)


def fail_oddly():
    """Raises what cannot be described."""

    class Odd(Exception):
        def __str__(self):
            raise KeyboardInterrupt("as told")

    raise Odd


DEEDS = {
    "loop": loop,
    "memory": memory,
    "stubborn": stubborn,
    "recurse": recurse,
    "nest": nest,
    "regex": regex,
    "print": lambda: flood(print),
    "log": lambda: flood(log.info),
    "sleep": sleep,
    "random": random,
    "fail": fail,
    "fail-oddly": fail_oddly,
    "exit": lambda: sys.exit(3),
    "exit-at-once": lambda: os._exit(3),
    "abort": os.abort,
    "wrong-dtype": lambda: Tensor.from_bytes([1, 1, 28, 28], Dtype.INT64, bytes(8 * 28 * 28)),
    "wrong-shape": lambda: Tensor.from_bytes([1, 784], Dtype.FLOAT32, bytes(4 * 28 * 28)),
    "wrong-type": lambda: "nothing",
}

ANSWERS = {
    "huge-answer": lambda: Response(bytes(20 * MEBIBYTE), "application/octet-stream"),
    "answer-loop": loop,
}
