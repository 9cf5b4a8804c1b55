"""The runtime for plugins in Python: the module of which the shared component is built.

The component exports the functions of a plugin and `load`, which the server calls once, when a
plugin's sources are uploaded. The memory that `load` leaves is the plugin.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import io
import os
import random
import select
import sys
from array import array
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType, SimpleNamespace, TracebackType
from typing import Any

import componentize_py_runtime
import runtime_ahead
from componentize_py_types import Err
from gristmill_plugin import host, plugin, snapshot, tracebacks
from runtime_missing import explained, missing_in_call
from wit_world.imports import loading, objects

#: The files of the standard library have paths that begin so. The others are the plugin's own.
LIBRARY = "@library/"

#: So much of the text of the plugin's own files is kept for tracebacks.
SOURCES_BYTES_MAX = 1 << 20

#: Files of the plugin's folder that calls can read, too: so much of each, and of all of them. A
#: guest of more than 16 MiB is a large one to the host, and Python begins with 15.
FILE_BYTES_MAX = 256 << 10
FILES_BYTES_MAX = 512 << 10

#: Those that are there for the build.
NOT_FILES = ("pyproject.toml", "requirements.lock", "requirements.txt")

#: The functions that a plugin may export.
FUNCTIONS = ("preprocess", "postprocess", "handle")

#: The modules of the host's interfaces that work while the plugin is loaded. A call of another
#: interface would end the loading without a line.
WHILE_LOADING = (host.log.__name__, loading.__name__, objects.__name__)

#: The addresses that are told at once.
ADDRESSES = 8 << 10

#: The code of functions. It stays: what is told to the host must not be freed.
_code: list[CodeType] = []

#: The files that calls can read.
_files: dict[str, bytes] = {}

_is_loading = True
_source_bytes = 0
_urandom = os.urandom
_call_import = componentize_py_runtime.call_import


class WitWorld:
    """The component's world. `load` puts a plugin's functions in place of the others."""

    def preprocess(self, context: Any, request: Any) -> Any:
        raise NotImplementedError

    def postprocess(self, context: Any, outputs: Any, state: Any) -> Any:
        raise NotImplementedError

    def handle(self, context: Any, request: Any) -> Any:
        raise NotImplementedError

    def load(self, app: str) -> list[str]:
        # The component's build has looked for modules in folders that are gone now.
        sys.meta_path[:] = [*sys.meta_path[:2], Sources]
        sys.path[:] = []
        sys.path_importer_cache.clear()
        builtins.open = io.open = open_source
        os.urandom = urandom
        # The build has imported it. A plugin that imports it gets its own.
        del sys.modules["random"]
        # `selectors`, which asyncio and subprocess import, tries whether `poll` works by waiting,
        # which ends the loading.
        vars(select).pop("poll", None)
        # The functions and classes of the interfaces stay as they are: Python forgets what it has
        # learnt about a class if one of its attributes changes.
        componentize_py_runtime.call_import = call_while_loading
        try:
            module = importlib.import_module(app)
            runtime_ahead.prepare()
            world = getattr(module, "WitWorld", None)
            if world is None:
                raise TypeError(f"{app}.py exports no plugin: put @export before its class")
        except BaseException as error:
            error.__traceback__ = after_import(error.__traceback__)
            raise Err(explained(error) or tracebacks.format_exception(error)) from None
        componentize_py_runtime.call_import = _call_import
        exported = [name for name in FUNCTIONS if hasattr(world, name)]
        seeds = "random" in sys.modules
        for name in exported:
            function = vars(world)[name]
            setattr(WitWorld, name, seeded(function) if seeds else function)
        keep_files()
        global _is_loading
        _is_loading = False
        snapshot.settle(keep_objects)
        return exported


def call_while_loading(index: int, arguments: Any) -> Any:
    """In place of the function by which the module of an interface calls the host."""
    if sys._getframe(1).f_globals["__name__"] not in WHILE_LOADING:
        raise RuntimeError(
            "the host works in calls only, and the module is loaded before: make and read tensors, "
            "arrays, pictures and assets within the call, or compute it with Python's own numbers"
        )
    return _call_import(index, arguments)


class Sources:
    """Imports modules from the sources and from the standard library."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _is_loading:
            # `importlib.util.find_spec` only asks. Between it and this there is one more function.
            if sys._getframe(2).f_code.co_name == "find_spec":
                return None
            raise missing_in_call(name)
        base = name.replace(".", "/")
        for root in ("", LIBRARY):
            for file, is_package in ((f"{base}/__init__.py", True), (f"{base}.py", False)):
                source = loading.read_file(root + file)
                if source is not None:
                    origin = f"/python/{file}" if root else file
                    spec = ModuleSpec(name, Sources, origin=origin, is_package=is_package)
                    spec.loader_state = source
                    spec.has_location = True
                    return spec
        if loading.read_file(f"{base}/") is not None:
            # A folder without `__init__.py`.
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [base]
            return spec
        return None

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        source, spec.loader_state = spec.loader_state, None
        if not str(spec.origin).startswith("/"):
            keep_source(str(spec.origin), source)
        try:
            code: CodeType = compile(source, str(spec.origin), "exec", dont_inherit=True)
        except SyntaxError as error:
            # Python does not name it if it has null bytes.
            error.filename = error.filename or str(spec.origin)
            raise
        if not str(spec.origin).startswith("/"):
            runtime_ahead.note(module.__dict__, code, source)
        exec(code, module.__dict__)

    @staticmethod
    def get_resource_reader(name: str) -> Any:
        """Reads the files of a package, for `importlib.resources`."""
        from importlib.readers import FileReader

        spec = sys.modules[name].__spec__
        assert spec is not None
        return FileReader(SimpleNamespace(path=spec.origin))  # type: ignore[arg-type]


def keep_source(name: str, source: bytes) -> None:
    """Keep the text of a file for tracebacks."""
    global _source_bytes
    _source_bytes += len(source)
    if _source_bytes <= SOURCES_BYTES_MAX:
        tracebacks.sources[name] = source.decode(errors="replace")


def keep_files() -> None:
    """Keep the plugin's files for calls, but for its code."""
    left = FILES_BYTES_MAX
    for line in (loading.read_file("/") or b"").decode().splitlines():
        size, _, name = line.partition(" ")
        if name.endswith((".py", ".pyi")) or name in NOT_FILES or ".dist-info/" in name:
            continue
        if int(size) <= min(left, FILE_BYTES_MAX):
            content = loading.read_file(name)
            if content is not None:
                left -= len(content)
                _files[name] = content


def keep_objects() -> None:
    """Tell the host which objects exist as long as the memory."""
    addresses, code = array("I"), _code
    is_tracked, referents = gc.is_tracked, gc.get_referents
    for found in gc.get_objects():
        addresses.append(id(found))
        for other in referents(found):
            if not is_tracked(other):
                addresses.append(id(other))
                if type(other) is CodeType:
                    code.append(other)
        tell(addresses, ADDRESSES)
    for one in code:
        # The collector does not know what code refers to.
        for other in (one.co_consts, *one.co_consts, one.co_names, *one.co_names):
            addresses.append(id(other))
            if type(other) is CodeType:
                code.append(other)
        tell(addresses, ADDRESSES)
    tell(addresses, 0)


def tell(addresses: array[int], least: int) -> None:
    """Tell the host these addresses, if there are more than `least`."""
    if len(addresses) > least:
        objects.keep_objects(addresses.tobytes())
        del addresses[:]


def after_import(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this module and of Python's import at its beginning."""
    own = traceback
    while own is not None and own.tb_frame.f_code.co_filename.startswith(("/", "<frozen")):
        own = own.tb_next
    return own


def open_source(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    *_: object,
    **__: object,
) -> Any:
    """`open` for the files of the plugin's folder, which can only be read."""
    if set(mode) - set("rbt"):
        raise PermissionError(f"a plugin cannot write files: open({str(file)!r}, {mode!r})")
    parts = [part for part in str(file).split("/") if part not in ("", ".")]
    name = "/".join(parts)
    content = loading.read_file(name) if _is_loading else _files.get(name)
    if content is None:
        raise FileNotFoundError(
            f"{str(file)!r} is not in the plugin's folder, or it is opened in a call, which has files "
            "of up to 256 KiB, 512 KiB together: read larger ones at the level of the module"
        )
    if "b" in mode:
        return io.BytesIO(content)
    return io.TextIOWrapper(io.BytesIO(content), encoding or "utf-8", errors, newline)


def urandom(size: int) -> bytes:
    """`os.urandom` in calls. While the plugin is loaded, a key would be the same in all instances."""
    if _is_loading:
        raise RuntimeError(
            "there are no random bytes while the plugin is loaded: every instance would have the same"
        )
    return _urandom(size)


def seeded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, before whose first call in an instance the random numbers are seeded anew."""
    is_new = True

    def call(*arguments: Any) -> Any:
        nonlocal is_new
        if is_new:
            is_new = False
            sys.modules["random"].seed()
        return function(*arguments)

    return call


# The component's runtime looks for it, also after this module.
assert random is not None
plugin.prepare_runtime()
# Files of the standard library, and those of this runtime.
tracebacks.others = ("<frozen", "/python/", f"{os.path.dirname(__file__)}/")
gc.collect()
