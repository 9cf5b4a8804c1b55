"""The interface `prepare`."""

from __future__ import annotations

from dataclasses import dataclass

from .tensors import NamedTensor


@dataclass
class Prepared:
    inputs: list[NamedTensor]
    state: bytes
