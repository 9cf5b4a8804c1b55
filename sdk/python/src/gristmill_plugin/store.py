"""Values by key, in stores that the operator binds, such as Redis.

Features of users and items, counters, results that were computed before:

    ids = request.json_tensor("/ids", Dtype.INT64)
    features = store.gather("features", ids, 32, prefix="item:")

A bucket is a store's name on the server. The tenant's document grants it, as in
`"stores": {"features": "read"}`. Keys have 1 to 1024 bytes, at most 4096 in a call; values have at
most 1 MiB. While a call waits for a store it uses no CPU time.

In a trial, such as a sample or a shadow, `set` and `increment` answer without changing anything.

A plugin that can do without a value catches `Unavailable`. Under pytest `testing.store` stands in
for a store.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from . import checks
from .blob import Blob
from .failure import Internal
from .host import Err
from .host import store as host_store
from .tensor import Elements, Tensor

__all__ = [
    "InvalidArgument",
    "NotGranted",
    "ReadOnly",
    "StoreError",
    "Unavailable",
    "gather",
    "get",
    "get_many",
    "increment",
    "set",
]


class StoreError(Internal):
    """Why a store gave no answer. If nothing catches it: 500, with the text in the log only."""


class NotGranted(StoreError):
    """The tenant's document does not grant this bucket, or there is no such bucket."""


class InvalidArgument(StoreError):
    """An argument is out of range, or a value in the store is not what the function needs."""


class Unavailable(StoreError):
    """The store did not answer in time, or cannot be reached. It may answer later."""


class ReadOnly(StoreError):
    """The tenant's document grants this bucket for reading only."""


def get(bucket: str, key: str) -> bytes | None:
    """The value of a key. None if the bucket does not have the key."""
    value = get_many(bucket, [key])[0]
    return None if value is None else bytes(value)


def get_many(bucket: str, keys: Iterable[str]) -> list[Blob | None]:
    """The values of keys, in their order, with one request to the store.

    They are blobs: `bytes` copies one into the plugin.
    """
    listed = _keys(keys)
    try:
        values = host_store.get_many(checks.text("bucket", bucket), listed)
    except Err as error:
        _raise(error)
    return [None if value is None else Blob(value) for value in values]


def gather(
    bucket: str,
    keys: Iterable[str] | Elements,
    width: int,
    missing: float = 0.0,
    *,
    prefix: str = "",
) -> Tensor:
    """The rows of keys, as a float32 tensor of the shape (keys, width), with one request.

    Keys are texts, or a tensor of INT64 or of strings of one dimension, whose elements never reach
    the plugin's memory. Each key begins with `prefix`:
    `gather("features", request.json_tensor("/ids", Dtype.INT64), 32, prefix="item:")`.

    A value is `width` little-endian float32, as `array.astype("<f4").tobytes()` writes them. The
    row of a key that the bucket does not have, or with an empty value, is filled with `missing`.
    The numbers never reach the plugin's memory.

    Raises `InvalidArgument` for a value of another length; it names the key.
    """
    name, begin = checks.text("bucket", bucket), checks.text("prefix", prefix)
    columns, filling = checks.u32("width", width), checks.f32("missing", missing)
    try:
        if isinstance(keys, Elements):
            ids = keys._handle
            return Tensor(host_store.gather_by(name, begin, ids, columns, filling))
        listed = [begin + key for key in _keys(keys)]
        return Tensor(host_store.gather(name, listed, columns, filling))
    except Err as error:
        _raise(error)


def set(bucket: str, key: str, value: bytes | str, ttl_ms: int | None = None) -> None:
    """Set the value of a key. After `ttl_ms` milliseconds the store forgets it."""
    content = value.encode() if isinstance(value, str) else memoryview(value).tobytes()
    ttl = None if ttl_ms is None else checks.u64("ttl_ms", ttl_ms)
    try:
        host_store.set(checks.text("bucket", bucket), checks.text("key", key), content, ttl)
    except Err as error:
        _raise(error)


def increment(bucket: str, key: str, delta: int = 1) -> int:
    """Add to the whole number that a key has as decimal text, or to 0. Returns the sum."""
    if type(delta) is not int:
        raise TypeError(f"delta is {delta!r}, not an integer")
    if not -(2**63) <= delta < 2**63:
        raise ValueError(f"delta is {delta}, not from -2^63 to 2^63 - 1")
    try:
        return host_store.increment(checks.text("bucket", bucket), checks.text("key", key), delta)
    except Err as error:
        _raise(error)


def _keys(keys: Iterable[str]) -> list[str]:
    if isinstance(keys, str):
        raise TypeError(f"keys is the text {keys!r}, not a list of texts")
    return [checks.text("key", key) for key in keys]


def _raise(error: Err[host_store.StoreError]) -> NoReturn:
    why = error.value
    if isinstance(why, host_store.StoreError_NotGranted):
        raise NotGranted(why.value) from None
    if isinstance(why, host_store.StoreError_InvalidArgument):
        raise InvalidArgument(why.value) from None
    if isinstance(why, host_store.StoreError_ReadOnly):
        raise ReadOnly(why.value) from None
    raise Unavailable(why.value) from None
