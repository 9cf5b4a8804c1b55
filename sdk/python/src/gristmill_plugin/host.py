"""The host's interfaces, as `wit/` defines them.

In a component they are the bindings that componentize-py generates. Elsewhere, as under pytest,
they are those of the reference host.
"""

import os
import sys

if sys.platform == "wasi":
    # The build names its paths by numbers. The first one is the plugin's folder, in which the
    # plugin's module may open files while it is imported.
    os.chdir(next((path for path in sys.path if path[1:].isdigit()), "/"))
    from componentize_py_types import Err
    from wit_world.imports import (
        arrays,
        assets,
        http,
        image,
        json,
        keep,
        log,
        prepare,
        store,
        tables,
        tensors,
        tokenizer,
        types,
    )

    try:
        from wit_world.imports import models
    except ImportError:
        # Only components that export `handle` import it, and the shared runtime.
        models = None
else:
    from .reference import (
        arrays,
        assets,
        http,
        image,
        json,
        keep,
        log,
        models,
        prepare,
        store,
        tables,
        tensors,
        tokenizer,
        types,
    )
    from .reference.result import Err

#: The modules of the interfaces.
INTERFACES = [
    module
    for module in (
        *(arrays, assets, http, image, json, keep, log, models, prepare, store, tables, tensors),
        *(tokenizer, types),
    )
    if module is not None
]

__all__ = [
    "Err",
    "arrays",
    "assets",
    "image",
    "json",
    "keep",
    "log",
    "models",
    "prepare",
    "store",
    "tables",
    "tensors",
    "tokenizer",
    "types",
]
