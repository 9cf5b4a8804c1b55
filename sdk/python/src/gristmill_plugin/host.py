"""The host's interfaces, as `wit/` defines them.

In a component they are the bindings that componentize-py generates. Elsewhere, as under pytest,
they are those of the reference host.
"""

import sys

if sys.platform == "wasi":
    from componentize_py_types import Err
    from wit_world.imports import image, log, prepare, tensors, types
else:
    from .reference import image, log, prepare, tensors, types
    from .reference.result import Err

__all__ = ["Err", "image", "log", "prepare", "tensors", "types"]
