"""Pictures, tensors and blobs that a preprocessor keeps for the postprocessor of the same request.

They stay with the host: nothing is copied.

    return Prepared({"images": small.to_tensor()}, keep={"photo": photo})  # in `preprocess`

    photo = kept("photo")  # in `postprocess`
"""

from __future__ import annotations

from collections.abc import Mapping

from . import checks
from .blob import Blob
from .failure import Internal
from .host import Err
from .host import keep as host_keep
from .image import Color, Pixels
from .tensor import Elements, Tensor

__all__ = ["kept"]


def kept(name: str) -> Pixels | Tensor | Blob:
    """What the preprocessor of this request kept under this name.

    Raises `Internal` if it kept nothing, or it was taken before.
    """
    found = host_keep.take(checks.text("name", name))
    if found is None:
        raise Internal(f"nothing is kept as {name!r}: name it in `keep` of `Prepared`")
    if isinstance(found, host_keep.Kept_Tensor):
        return Tensor(found.value)
    if isinstance(found, host_keep.Kept_Blob):
        return Blob(found.value)
    color = Color.RGB if found.value.color() is Color.RGB else Color.GRAY
    return Pixels(found.value, color)


def lower_all(
    things: Mapping[str, Pixels | Elements | Blob],
) -> list[tuple[str, host_keep.Kept]]:
    """All of `things` as the host knows them. For the SDK itself."""
    lowered: list[tuple[str, host_keep.Kept]] = []
    for name, thing in things.items():
        checks.instance("a name of keep", name, str)
        checks.instance(f"keep {name!r}", thing, (Pixels, Elements, Blob))
        if isinstance(thing, Pixels):
            lowered.append((name, host_keep.Kept_Pixels(thing._handle)))
        elif isinstance(thing, Blob):
            lowered.append((name, host_keep.Kept_Blob(thing._handle)))
        else:
            lowered.append((name, host_keep.Kept_Tensor(thing._handle)))
    return lowered


def put_all(lowered: list[tuple[str, host_keep.Kept]]) -> None:
    """Keep all of them. The host takes their handles: nothing else can use these any more."""
    for name, value in lowered:
        try:
            host_keep.put(checks.text("name", name), value)
        except Err as error:
            raise Internal(f"keeping {name!r}: {error.value}") from None
