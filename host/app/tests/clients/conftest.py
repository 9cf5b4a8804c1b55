"""The choice of cases and of their library. A run tests one library, given by `--library`.

A case with the argument `library` runs on all libraries of tritonclient, or on those that its marker `libraries`
names. Cases are coroutines and run on one event loop, since a library's client belongs to its loop.
Those with the marker `changes_the_server` run last.
"""

import asyncio
import inspect
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite("libraries", "values")

KSERVE = "kserve"
KSERVE_FILE = "test_kserve.py"
# The longest time of a case, in seconds.
PATIENCE_S = 240


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--library", required=True, help="tritonclient.http, .http.aio, .grpc, .grpc.aio, kserve"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "libraries(*names): the libraries that a case is for")
    config.addinivalue_line("markers", "changes_the_server: runs after those without it")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # Each kind of library imports only the packages that it needs.
    if not collection_path.name.startswith("test_"):
        return None
    is_kserve = config.getoption("library") == KSERVE
    return (collection_path.name == KSERVE_FILE) != is_kserve


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    library = config.getoption("library")

    def is_for_library(item: pytest.Item) -> bool:
        marker = item.get_closest_marker("libraries")
        return marker is None or library in marker.args

    config.hook.pytest_deselected(items=[item for item in items if not is_for_library(item)])
    items[:] = [item for item in items if is_for_library(item)]
    items.sort(key=lambda item: item.get_closest_marker("changes_the_server") is not None)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a case that is a coroutine. It fails if it takes too long."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = pyfuncitem._fixtureinfo.argnames
    case = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in arguments})
    pyfuncitem.funcargs["runner"].run(asyncio.wait_for(case, PATIENCE_S))
    return True


def pytest_unconfigure(config: pytest.Config) -> None:
    # Do not wait for tasks that a failed case left behind.
    status = getattr(config, "exit_status", None)
    if status:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.exit_status = int(exitstatus)
    if path := os.environ.get("GRISTMILL_TEST_SCORES"):
        note_scores(path, session.config.getoption("library"))


# The outcomes of each topic, which is a file, for the table of `cargo xtask nightly`.
scores: dict[str, Counter[str]] = {}


def count(nodeid: str, outcome: str) -> None:
    topic = Path(nodeid.split("::")[0]).stem.removeprefix("test_")
    scores.setdefault(topic, Counter())[outcome] += 1


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        count(item.nodeid, "not_applicable")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.failed:
        count(report.nodeid, report.outcome)


def note_scores(path: str, suite: str) -> None:
    with Path(path).open("a") as file:
        for topic, counts in sorted(scores.items()):
            numbers = {name: counts[name] for name in ("passed", "failed", "not_applicable")}
            file.write(json.dumps({"suite": suite, "topic": topic, **numbers}) + "\n")


@pytest.fixture(scope="session", autouse=True)
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def library(runner: asyncio.Runner, pytestconfig: pytest.Config) -> Iterator[Any]:
    """The library of this run."""
    from libraries import TRITON

    async def make() -> Any:
        return TRITON[pytestconfig.getoption("library")]()

    library = runner.run(make())
    yield library
    runner.run(library.close())
