"""The interface `tokenizer`, by the Python package `tokenizers`, which only tests need."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Any

from .result import Err
from .tensors import Dtype, Tensor
from .types import Blob


@dataclass
class TokenizerError_NoAsset:
    value: str


@dataclass
class TokenizerError_Malformed:
    value: str


@dataclass
class TokenizerError_TooLarge:
    value: str


@dataclass
class TokenizerError_InvalidArgument:
    value: str


TokenizerError = (
    TokenizerError_NoAsset
    | TokenizerError_Malformed
    | TokenizerError_TooLarge
    | TokenizerError_InvalidArgument
)


@dataclass
class Texts_List:
    value: list[str]


@dataclass
class Texts_Tensor:
    value: Tensor


@dataclass
class Texts_Blob:
    value: Blob


Texts = Texts_List | Texts_Tensor | Texts_Blob


class Side(Enum):
    LEFT = 0
    RIGHT = 1


class OffsetUnit(Enum):
    CHARACTERS = 0
    BYTES = 1


@dataclass
class Padding_Longest:
    pass


@dataclass
class Padding_Fixed:
    value: int


@dataclass
class Padding_Buckets:
    value: list[int]


Padding = Padding_Longest | Padding_Fixed | Padding_Buckets


@dataclass
class Options:
    max_length: int | None
    truncate: Side | None
    padding: Padding
    pad: Side | None
    pad_id: int | None
    add_special_tokens: bool
    dtype: Dtype
    offsets: OffsetUnit | None


@dataclass
class Encoded:
    ids: Tensor
    attention_mask: Tensor
    type_ids: Tensor
    lengths: list[int]
    offsets: Tensor | None


#: The files by their names, as the package has them.
files: dict[str, Any] = {}


def encode(asset: str, texts: Texts, pairs: Texts | None, options: Options) -> Encoded:
    tokenizer = _find(asset)
    rows: list[Any] = _list(texts)
    if pairs is not None:
        others = _list(pairs)
        if len(others) != len(rows):
            raise _invalid(f"there are {len(rows)} texts, but {len(others)} pairs")
        rows = list(zip(rows, others, strict=True))
    if options.dtype not in (Dtype.INT64, Dtype.INT32):
        raise _invalid(f"dtype is {options.dtype.name.lower()}: must be int64 or int32")
    own, padding = tokenizer.truncation, tokenizer.padding
    tokenizer.no_padding()
    try:
        if options.max_length is not None or own is not None and options.truncate is not None:
            changed = dict(own or {}, stride=0)
            if options.max_length is not None:
                changed["max_length"] = options.max_length
            if options.truncate is not None:
                changed["direction"] = options.truncate.name.lower()
            tokenizer.enable_truncation(**changed)
        found = tokenizer.encode_batch(rows, add_special_tokens=options.add_special_tokens)
    finally:
        tokenizer.no_truncation()
        if own is not None:
            tokenizer.enable_truncation(**own)
        if padding is not None:
            tokenizer.enable_padding(**padding)
    lengths = [len(each.ids) for each in found]
    length = _length(max(lengths, default=0), options.padding)
    is_left = options.pad is Side.LEFT
    if options.pad is None and padding is not None:
        is_left = padding["direction"] == "left"
    usual = (tokenizer.token_to_id(token) for token in ("[PAD]", "<pad>"))
    pad_id = next((each for each in usual if each is not None), 0)
    if padding is not None:
        pad_id = padding["pad_id"]
    if options.pad_id is not None:
        pad_id = options.pad_id

    def tensor(rows: list[list[int]], pad: list[int], *last: int) -> Tensor:
        flat: list[int] = []
        for count, row in zip(lengths, rows, strict=True):
            filling = pad * (length - count)
            flat += filling + row if is_left else row + filling
        code = "q" if options.dtype is Dtype.INT64 else "i"
        data = struct.pack(f"<{len(flat)}{code}", *flat)
        return Tensor.create(options.dtype, [len(rows), length, *last], data)

    offsets = None
    if options.offsets is not None:
        if options.offsets is OffsetUnit.BYTES:
            raise _invalid("the package counts characters: tests have no offsets in bytes")
        offsets = tensor([list(chain(*each.offsets)) for each in found], [0, 0], 2)
    pad_type = 0 if padding is None else padding["pad_type_id"]
    return Encoded(
        tensor([each.ids for each in found], [pad_id]),
        tensor([[1] * len(each.ids) for each in found], [0]),
        tensor([each.type_ids for each in found], [pad_type]),
        lengths,
        offsets,
    )


def decode(asset: str, ids: Tensor, skip_special_tokens: bool) -> list[str]:
    tokenizer = _find(asset)
    codes = {Dtype.INT64: "q", Dtype.INT32: "i", Dtype.UINT32: "I"}
    if ids.dtype() not in codes:
        name = ids.dtype().name.lower()
        raise _invalid(f"ids is a tensor of {name}: must be int64, int32 or uint32")
    flat = [each for (each,) in struct.iter_unpack(f"<{codes[ids.dtype()]}", ids.data())]
    for each in flat:
        if not 0 <= each < 2**32:
            raise _invalid(f"the id {each} must be 0 to {2**32 - 1}")
    *rows, length = ids.shape()
    count = rows[0] if rows else 1
    each_row = [flat[row * length : (row + 1) * length] for row in range(count)]
    return [tokenizer.decode(row, skip_special_tokens=skip_special_tokens) for row in each_row]


def token_to_id(asset: str, token: str) -> int | None:
    found: int | None = _find(asset).token_to_id(token)
    return found


def _list(texts: Texts) -> list[str]:
    if isinstance(texts, Texts_List):
        return texts.value
    if isinstance(texts, Texts_Blob):
        return [texts.value.read(0, 2**64 - 1).decode()]
    if texts.value.dtype() is not Dtype.STRING or len(texts.value.shape()) != 1:
        raise _invalid("texts is not a tensor of strings of one dimension")
    data, found, at = texts.value.data(), [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        found.append(data[at + 4 : at + 4 + length].decode())
        at += 4 + length
    return found


def _length(longest: int, padding: Padding) -> int:
    if isinstance(padding, Padding_Longest):
        return longest
    lengths = [padding.value] if isinstance(padding, Padding_Fixed) else padding.value
    fitting = [length for length in lengths if length >= longest]
    if not fitting:
        most = max(lengths, default=0)
        text = f"a text has {longest} tokens, but padding makes rows of at most {most}: "
        raise _invalid(text + "set max-length to cut it off")
    return min(fitting)


def _invalid(text: str) -> Err[TokenizerError]:
    return Err(TokenizerError_InvalidArgument(text))


def _find(name: str) -> Any:
    tokenizer = files.get(name)
    if tokenizer is None:
        text = f"this test has no asset {name!r}: make one with testing.tokenizer({name!r}, ..)"
        raise Err(TokenizerError_NoAsset(text))
    return tokenizer
