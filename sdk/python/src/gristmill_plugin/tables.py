"""Rows of numbers by key, in files: prices, features of products, embeddings.

    features = tables.gather("products.csv", product_ids, 16)
    prices = tables.gather("products.csv", product_ids, ["price", "discount"])

The file is among the assets of the plugin or of its pipeline, under this name. It is CSV or
Parquet, with a column of keys and columns of numbers; or an `.npy` of two dimensions, whose keys
are the numbers of its rows, from 0. The host reads it once for each version.

Keys are at most 4096 in a call. They can also be a tensor, which never enters the plugin:

    ids = request.json_tensor("/productIds", Dtype.INT64)
    features = tables.gather("products.csv", ids, 16)

Under pytest `testing.table` stands in for a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from . import checks
from .failure import Internal, Unprocessable
from .host import Err
from .host import tables as host_tables
from .tensor import Elements, Tensor

__all__ = ["InvalidArgument", "Malformed", "NoAsset", "TableError", "TooLarge", "gather"]


class TableError(Internal):
    """Why there are no rows. If nothing catches it: 500, with the text in the log only."""


class NoAsset(TableError):
    """There is no asset of this name. The text says which there are, and how to add one."""


class Malformed(TableError):
    """The asset is not a table, or is over a limit. The text names the line and the column."""


class InvalidArgument(TableError):
    """An argument is out of range, or does not fit the file."""


class TooLarge(Unprocessable):
    """Keys or the result are over a limit. If nothing catches it: 422, with the text."""


def gather(
    asset: str,
    keys: Iterable[str | int] | Elements,
    columns: int | Iterable[str],
    missing: float = 0.0,
) -> Tensor:
    """The rows of keys, as a float32 tensor of the shape (keys, columns).

    Keys are texts or integers, or a tensor of INT64 or of strings of one dimension. `columns` is
    the number of columns that the file has besides its keys, or the names of some of them. The row
    of a key that the file does not have is filled with `missing`.

    Raises `TooLarge` for too many keys, and a `TableError` if the file or an argument is wrong.
    """
    name, listed, chosen = checks.text("asset", asset), _keys(keys), _columns(columns)
    filling = checks.f32("missing", missing)
    try:
        return Tensor(host_tables.gather(name, listed, chosen, filling))
    except Err as error:
        _raise(error)


def _keys(keys: Iterable[str | int] | Elements) -> host_tables.Keys:
    if isinstance(keys, Elements):
        return host_tables.Keys_Tensor(keys._handle)
    if isinstance(keys, str):
        raise TypeError(f"keys is the text {keys!r}, not a list of keys")
    return host_tables.Keys_List([_key(key) for key in keys])


def _key(key: str | int) -> str:
    return str(key) if type(key) is int else checks.text("key", key)


def _columns(columns: int | Iterable[str]) -> host_tables.Columns:
    if isinstance(columns, int):
        return host_tables.Columns_Width(checks.u32("columns", columns))
    if isinstance(columns, str):
        raise TypeError(f"columns is the text {columns!r}, not a number or a list of names")
    return host_tables.Columns_Named([checks.text("column", name) for name in columns])


def _raise(error: Err[host_tables.TableError]) -> NoReturn:
    why = error.value
    if isinstance(why, host_tables.TableError_NoAsset):
        raise NoAsset(why.value) from None
    if isinstance(why, host_tables.TableError_Malformed):
        raise Malformed(why.value) from None
    if isinstance(why, host_tables.TableError_TooLarge):
        raise TooLarge(why.value) from None
    raise InvalidArgument(why.value) from None
