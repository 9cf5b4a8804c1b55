"""The values that pass between the model and the two calls: its inputs, the state, its outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .failure import Internal
from .tensor import Dtype, Elements, Tensor, View

if TYPE_CHECKING:
    from .blob import Blob
    from .image import Pixels


@dataclass(slots=True)
class Prepared:
    """The result of a preprocessor.

    `inputs` has one tensor or array for each of the model's inputs. Dimension 0 is rows, and all have the
    same number of them. `state` are bytes for the postprocessor of the same request, and `keep` are
    pictures, tensors and blobs for it, which stay with the host: it gets them by `kept`.
    """

    inputs: Mapping[str, Elements]
    state: bytes = b""
    keep: Mapping[str, Pixels | Elements | Blob] = field(default_factory=dict)


class Outputs(Mapping[str, Tensor]):
    """This request's rows of the model's outputs by name, in the model's order."""

    __slots__ = ("_tensors",)

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> Tensor:
        """The output of this name. Raises `MissingOutput` if the model has no such output."""
        try:
            return self._tensors[name]
        except KeyError:
            raise MissingOutput(name, list(self._tensors)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def tensor(
        self, name: str, shape: Sequence[int | None], dtype: Dtype = Dtype.FLOAT32
    ) -> Tensor:
        """The output of this name, still on the host. In `shape`, None means any size.

        Raises `Internal` if the model has no such output, or its dtype or shape differs.
        """
        tensor = self[name]
        found = tensor.dtype
        if found is not dtype:
            raise Internal(f"output {name!r} is {found.name}, wanted {dtype.name}")
        have = tensor.shape
        if have != tuple(shape) and not _fits(have, shape):
            raise Internal(f"output {name!r} has shape {list(have)}, wanted {list(shape)}")
        return tensor

    def view(self, name: str, shape: Sequence[int | None], dtype: Dtype = Dtype.FLOAT32) -> View:
        """The elements of the output of this name, copied from the host. As `tensor`."""
        return self.tensor(name, shape, dtype)._view(dtype)


def _fits(have: tuple[int, ...], shape: Sequence[int | None]) -> bool:
    return len(have) == len(shape) and all(
        want is None or want == size for want, size in zip(shape, have, strict=True)
    )


class MissingOutput(Internal, KeyError):
    """The model has no output of this name."""

    def __init__(self, name: str, names: list[str]) -> None:
        super().__init__(f"the model has no output {name!r}, it has {names}")

    def __str__(self) -> str:
        return self.text
