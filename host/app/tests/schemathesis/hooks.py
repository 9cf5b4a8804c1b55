"""Keeps the calls of schemathesis useful: what they need stays there, and none takes long.

It changes only calls that fit the description; those that break it are sent as they are.
"""

import hashlib
import os
import zlib
from pathlib import Path

import schemathesis
from hypothesis import strategies as st
from schemathesis.openapi.checks import IgnoredAuth

# What most calls name must not go away. The other names of the dictionaries are free.
KEPT = {"acme": "spare", "digits": "spare"}

# The most of these in a model's configuration: each instance is loaded.
SMALL = {"instances": 2, "threads": 2, "inter_op_threads": 2, "max_batch_size": 64}

# A usable plugin and a usable model. Random bytes alone would never be taken.
FILES = [Path(os.environ[name]).read_bytes() for name in ("GRISTMILL_PLUGIN", "GRISTMILL_MODEL")]

schemathesis.openapi.media_type(
    "application/octet-stream",
    st.one_of(st.sampled_from([*FILES, b""]), st.binary(max_size=200)),
)


def spared(value):
    return KEPT.get(value, value) if isinstance(value, str) else value


def spare_names(names):
    """The same things with names that may go away."""
    return {key: spared(value) for key, value in names.items()}


def small_config(config):
    """A configuration that loads quickly."""
    config = dict(config)
    for key, most in SMALL.items():
        if isinstance(config.get(key), int):
            config[key] = min(config[key], most)
    # It depends on the size of batches, which was changed.
    config.pop("allowed_batch_sizes", None)
    if isinstance(config.get("warm_up"), list):
        config["warm_up"] = [1 + size % 8 for size in config["warm_up"][:2] if isinstance(size, int)]
    return config


def small_change(change):
    if change.get("kind", "").startswith(("delete_", "unload_")):
        return spare_names(change)
    if change.get("kind") == "put_model_config" and isinstance(change.get("document"), dict):
        return {**change, "document": small_config(change["document"])}
    return change


def is_free(case):
    """Three of four calls. With made-up tags and digests nothing would ever be changed."""
    made_up = repr((case.path, case.path_parameters, case.query, case.body)).encode()
    return zlib.crc32(made_up) % 4 > 0


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Wrong tokens are tried with each operation, so soon they are refused with 429."""
    return not (isinstance(failure, IgnoredAuth) and "got `429 " in failure.message)


@schemathesis.hook
def map_case(context, case):
    if case.meta is None or case.meta.generation.mode.is_negative:
        return case
    if case.path.endswith("/debug/profile"):
        # A profile takes as long as it says.
        case.query = {**(case.query or {}), "seconds": 1}
    free = is_free(case)
    if free:
        for name in ("If-Match", "If-None-Match"):
            case.headers.pop(name, None)
    if free and "/blobs/" in case.path and isinstance(case.body, bytes):
        case.path_parameters = {"digest": "sha256:" + hashlib.sha256(case.body).hexdigest()}
    if case.method == "DELETE" and spare_names(case.path_parameters) != case.path_parameters:
        case.path_parameters = spare_names(case.path_parameters)
    if not isinstance(case.body, dict):
        return case
    body = case.body
    if free:
        body = {key: value for key, value in body.items() if key != "expected_release"}
    if case.path.endswith("/config"):
        body = small_config(body)
    if isinstance(body.get("changes"), list):
        body = {**body, "changes": [small_change(change) for change in body["changes"]]}
    if case.path.endswith("/rollback"):
        body = {key: spared(value) for key, value in body.items()}
        if not body.get("tenant") and not body.get("model"):
            # Going back with everything is only tried.
            case.query = {**(case.query or {}), "dry_run": True}
    if body != case.body:
        case.body = body
    return case
