"""The interface `tables`: files are dictionaries that a test has made."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from .result import Err
from .tensors import Dtype, Tensor, ids_of


@dataclass
class TableError_NoAsset:
    value: str


@dataclass
class TableError_Malformed:
    value: str


@dataclass
class TableError_TooLarge:
    value: str


@dataclass
class TableError_InvalidArgument:
    value: str


TableError = (
    TableError_NoAsset | TableError_Malformed | TableError_TooLarge | TableError_InvalidArgument
)


@dataclass
class Keys_List:
    value: list[str]


@dataclass
class Keys_Tensor:
    value: Tensor


Keys = Keys_List | Keys_Tensor


@dataclass
class Columns_Width:
    value: int


@dataclass
class Columns_Named:
    value: list[str]


Columns = Columns_Width | Columns_Named


@dataclass
class Table:
    """The rows of a file by their keys, and the names of its columns."""

    rows: dict[str, list[float]]
    columns: list[str] = field(default_factory=list)

    @property
    def width(self) -> int:
        return len(self.columns) or len(next(iter(self.rows.values()), []))


#: The files by their names.
files: dict[str, Table] = {}


def gather(asset: str, keys: Keys, columns: Columns, missing: float) -> Tensor:
    table = _find(asset)
    places = _places(asset, table, columns)
    listed = _list(keys)
    filling = [missing] * len(places)
    found = [table.rows.get(key) for key in listed]
    rows = [filling if row is None else [row[place] for place in places] for row in found]
    numbers = [number for row in rows for number in row]
    data = struct.pack(f"<{len(numbers)}f", *numbers)
    return Tensor.create(Dtype.FLOAT32, [len(listed), len(places)], data)


def _places(asset: str, table: Table, columns: Columns) -> list[int]:
    if isinstance(columns, Columns_Named):
        for name in columns.value:
            if name not in table.columns:
                has = ", ".join(sorted(table.columns))
                raise _invalid(f"asset {asset!r}: it has no column {name!r}: its columns are {has}")
        return [table.columns.index(name) for name in columns.value]
    if columns.value != table.width:
        text = f"asset {asset!r}: it has {table.width} columns besides the key, "
        raise _invalid(text + f"but the width is {columns.value}")
    return list(range(table.width))


def _list(keys: Keys) -> list[str]:
    if isinstance(keys, Keys_List):
        return keys.value
    listed = ids_of(keys.value)
    if listed is None:
        raise _invalid("keys must be a tensor of int64 or strings of one dimension")
    return listed


def _invalid(text: str) -> Err[TableError]:
    return Err(TableError_InvalidArgument(text))


def _find(name: str) -> Table:
    table = files.get(name)
    if table is None:
        text = f"this test has no table {name!r}: make one with testing.table({name!r}, ..)"
        raise Err(TableError_NoAsset(text))
    return table
