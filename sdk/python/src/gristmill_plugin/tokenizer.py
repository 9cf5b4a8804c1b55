"""Tokens of texts, made by the host as a `tokenizer.json` of Hugging Face's tokenizers says.

    tokenizer = Tokenizer("tokenizer.json")

    texts = request.json_tensor("/texts", Dtype.STRING)
    tokens = tokenizer.encode(texts, max_length=256)
    Prepared({"input_ids": tokens.ids, "attention_mask": tokens.attention_mask})

The file is among the assets of the plugin or of its pipeline, under this name. The host reads it
once, at the first call that needs it. The ids are those of the Python package `tokenizers`; neither
they nor texts in a tensor or a blob pass through the plugin.

Texts are at most 4096 in a call, with at most 128 KiB each and 4 MiB in all. Under pytest
`testing.tokenizer` stands in for a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from . import checks
from .blob import Blob
from .failure import Internal, Unprocessable
from .host import Err
from .host import tokenizer as host_tokenizer
from .tensor import Dtype, Elements, Tensor

__all__ = [
    "Encoded",
    "InvalidArgument",
    "Malformed",
    "NoAsset",
    "TooLarge",
    "Tokenizer",
    "TokenizerError",
]

_Case = TypeVar("_Case")

_SIDES = {
    None: None,
    "left": host_tokenizer.Side.LEFT,
    "right": host_tokenizer.Side.RIGHT,
}

_UNITS = {
    None: None,
    "characters": host_tokenizer.OffsetUnit.CHARACTERS,
    "bytes": host_tokenizer.OffsetUnit.BYTES,
}


class TokenizerError(Internal):
    """What is wrong with a file or an argument. If nothing catches it: 500, with a log line."""


class NoAsset(TokenizerError):
    """There is no asset of this name."""


class Malformed(TokenizerError):
    """The asset is not a tokenizer, or one that does not run here. The text names the part."""


class InvalidArgument(TokenizerError):
    """An argument is out of range, or does not fit the file."""


class TooLarge(Unprocessable):
    """Texts are over a limit, or take too long. If nothing catches it: 422, with the text."""


@dataclass(frozen=True)
class Encoded:
    """The tokens of texts: one row for each text or pair."""

    #: (texts, length)
    ids: Tensor
    #: 1 for tokens, 0 for padding: (texts, length)
    attention_mask: Tensor
    #: 0 for tokens of the first text of a pair, 1 for the second: (texts, length)
    type_ids: Tensor
    #: Tokens of each row, without padding.
    lengths: list[int]
    #: Where each token begins and ends in its text, if asked for: (texts, length, 2)
    offsets: Tensor | None


class Tokenizer:
    """A tokenizer by the name of its file. It holds nothing, so a module can have one."""

    __slots__ = ("asset",)

    def __init__(self, asset: str = "tokenizer.json") -> None:
        self.asset = checks.text("asset", asset)

    def encode(
        self,
        texts: str | Iterable[str] | Elements | Blob,
        pairs: str | Iterable[str] | Elements | Blob | None = None,
        *,
        max_length: int | None = None,
        truncate: str | None = None,
        padding: str | int | Sequence[int] = "longest",
        pad: str | None = None,
        pad_id: int | None = None,
        add_special_tokens: bool = True,
        dtype: Dtype = Dtype.INT64,
        offsets: str | None = None,
    ) -> Encoded:
        """The tokens of texts: a list, a tensor of strings, a blob in UTF-8, or one text.

        With `pairs`, which are as many, each text and its pair make one row. `padding` is
        "longest", a length, or the lengths of which the smallest that fits is taken. `truncate` and
        `pad` are "left" or "right". What is None is as the file says. `dtype` is INT64 or INT32.
        `offsets` are "characters" or "bytes".

        Raises `TooLarge` for texts that are over a limit, and `TokenizerError` if the file or an
        argument is wrong.
        """
        options = host_tokenizer.Options(
            max_length=None if max_length is None else checks.u32("max_length", max_length),
            truncate=_choice("truncate", truncate, _SIDES),
            padding=_padding(padding),
            pad=_choice("pad", pad, _SIDES),
            pad_id=None if pad_id is None else checks.u32("pad_id", pad_id),
            add_special_tokens=bool(add_special_tokens),
            dtype=checks.case("dtype", dtype, Dtype),
            offsets=_choice("offsets", offsets, _UNITS),
        )
        listed = _texts("texts", texts)
        paired = None if pairs is None else _texts("pairs", pairs)
        try:
            found = host_tokenizer.encode(self.asset, listed, paired, options)
        except Err as error:
            _raise(error)
        return Encoded(
            Tensor(found.ids),
            Tensor(found.attention_mask),
            Tensor(found.type_ids),
            list(found.lengths),
            None if found.offsets is None else Tensor(found.offsets),
        )

    def decode(
        self, ids: Elements | Sequence[int], *, skip_special_tokens: bool = True
    ) -> list[str]:
        """The texts of ids, one for each row of an integer tensor. A list of ids is one row."""
        if not isinstance(ids, Elements):
            ids = Tensor.from_values([len(ids)], Dtype.INT64, ids)
        try:
            return list(host_tokenizer.decode(self.asset, ids._handle, bool(skip_special_tokens)))
        except Err as error:
            _raise(error)

    def token_to_id(self, token: str) -> int | None:
        """The id of a token, such as "[MASK]". None if there is no such token."""
        try:
            return host_tokenizer.token_to_id(self.asset, checks.text("token", token))
        except Err as error:
            _raise(error)


def _texts(name: str, texts: str | Iterable[str] | Elements | Blob) -> host_tokenizer.Texts:
    if isinstance(texts, str):
        return host_tokenizer.Texts_List([checks.text(name, texts)])
    if isinstance(texts, Elements):
        return host_tokenizer.Texts_Tensor(texts._handle)
    if isinstance(texts, Blob):
        return host_tokenizer.Texts_Blob(texts._handle)
    return host_tokenizer.Texts_List([checks.text(name, text) for text in texts])


def _padding(padding: str | int | Sequence[int]) -> host_tokenizer.Padding:
    if isinstance(padding, str):
        if padding != "longest":
            raise ValueError(f'padding is {padding!r}, not "longest", a length or lengths')
        return host_tokenizer.Padding_Longest()
    if isinstance(padding, int):
        return host_tokenizer.Padding_Fixed(checks.u32("padding", padding))
    return host_tokenizer.Padding_Buckets(checks.u32s("padding", padding))


def _choice(name: str, value: str | None, choices: Mapping[str | None, _Case]) -> _Case:
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} is {value!r}, not one of {known}")
    return choices[value]


def _raise(error: Err[host_tokenizer.TokenizerError]) -> NoReturn:
    why = error.value
    if isinstance(why, host_tokenizer.TokenizerError_NoAsset):
        raise NoAsset(why.value) from None
    if isinstance(why, host_tokenizer.TokenizerError_Malformed):
        raise Malformed(why.value) from None
    if isinstance(why, host_tokenizer.TokenizerError_TooLarge):
        raise TooLarge(why.value) from None
    raise InvalidArgument(why.value) from None
