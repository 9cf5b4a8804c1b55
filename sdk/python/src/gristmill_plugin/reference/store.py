"""The interface `store`: buckets are dictionaries that a test has made."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from .result import Err
from .tensors import Dtype, Tensor, ids_of
from .types import Blob


@dataclass
class StoreError_NotGranted:
    value: str


@dataclass
class StoreError_InvalidArgument:
    value: str


@dataclass
class StoreError_Unavailable:
    value: str


@dataclass
class StoreError_ReadOnly:
    value: str


StoreError = (
    StoreError_NotGranted
    | StoreError_InvalidArgument
    | StoreError_Unavailable
    | StoreError_ReadOnly
)


@dataclass
class Bucket:
    """The values of a bucket. It is unavailable if `fault` says why."""

    values: dict[str, bytes] = field(default_factory=dict)
    read_only: bool = False
    fault: str | None = None


#: The buckets by their names.
buckets: dict[str, Bucket] = {}


def get(bucket: str, key: str) -> Blob | None:
    return get_many(bucket, [key])[0]


def get_many(bucket: str, keys: list[str]) -> list[Blob | None]:
    values = _find(bucket).values
    return [None if key not in values else Blob(values[key]) for key in keys]


def gather(bucket: str, keys: list[str], width: int, missing: float) -> Tensor:
    values = _find(bucket).values
    if width == 0:
        raise Err(StoreError_InvalidArgument("width is 0: must be at least 1"))
    filling = struct.pack("<f", missing) * width
    # An empty value counts as a missing key.
    rows = [values.get(key) or filling for key in keys]
    for key, row in zip(keys, rows, strict=True):
        if len(row) != len(filling):
            text = f"the value of {key!r} has {len(row)} bytes, "
            text += f"but {width} float32 have {len(filling)}"
            raise Err(StoreError_InvalidArgument(text))
    return Tensor.create(Dtype.FLOAT32, [len(keys), width], b"".join(rows))


def gather_by(bucket: str, prefix: str, ids: Tensor, width: int, missing: float) -> Tensor:
    listed = ids_of(ids)
    if listed is None:
        text = "ids must be int64 or strings of one dimension"
        raise Err(StoreError_InvalidArgument(text))
    return gather(bucket, [prefix + key for key in listed], width, missing)


def set(bucket: str, key: str, value: bytes, ttl_ms: int | None) -> None:
    _find_to_write(bucket).values[key] = bytes(value)


def increment(bucket: str, key: str, delta: int) -> int:
    values = _find_to_write(bucket).values
    try:
        total = int(values.get(key, b"0")) + delta
    except ValueError:
        text = f"the value of {key!r} is not a whole number"
        raise Err(StoreError_InvalidArgument(text)) from None
    values[key] = str(total).encode()
    return total


def _find(name: str) -> Bucket:
    bucket = buckets.get(name)
    if bucket is None:
        text = f"this test has no store {name!r}: make one with testing.store({name!r}, ..)"
        raise Err(StoreError_NotGranted(text))
    if bucket.fault is not None:
        raise Err(StoreError_Unavailable(bucket.fault))
    return bucket


def _find_to_write(name: str) -> Bucket:
    bucket = _find(name)
    if bucket.read_only:
        raise Err(StoreError_ReadOnly(f"this test lets it only read the store {name!r}"))
    return bucket
