"""Keeps the calls of schemathesis useful: what they need stays there, and none takes long.

It changes only calls that fit the description; those that break it are sent as they are.
"""

import zlib

import schemathesis
from schemathesis.core.parameters import ParameterLocation

# What most calls name must not go away. The other names of the dictionaries are free.
KEPT = {"acme": "spare", "digits": "spare"}

# The most of these in a model's configuration: each instance is loaded.
SMALL = {"instances": 2, "threads": 2, "inter_op_threads": 2, "max_batch_size": 64}


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
    if isinstance(config.get("warm_up"), list):
        config["warm_up"] = [1 + size % 8 for size in config["warm_up"][:2] if isinstance(size, int)]
    return config


def small_change(change):
    if change.get("kind", "").startswith(("delete_", "unload_")):
        return spare_names(change)
    if change.get("kind") == "put_model_config" and isinstance(change.get("document"), dict):
        return {**change, "document": small_config(change["document"])}
    return change


@schemathesis.hook
def map_case(context, case):
    if case.meta is None or case.meta.generation.mode.is_negative:
        return case
    # Three of four calls have no conditions: with made-up tags nothing would ever be changed.
    if zlib.crc32(repr((case.path, case.path_parameters, case.query)).encode()) % 4:
        for name in ("If-Match", "If-None-Match"):
            case.headers.pop(name, None)
    if case.method == "DELETE":
        case.path_parameters = spare_names(case.path_parameters)
    if not isinstance(case.body, dict):
        return case
    if case.path.endswith("/config"):
        case.body = small_config(case.body)
    if isinstance(case.body.get("changes"), list):
        case.body = {**case.body, "changes": [small_change(change) for change in case.body["changes"]]}
    if case.path.endswith("/rollback"):
        # Going back with everything is only tried.
        if not spare_names(case.body).get("tenant"):
            case.query = {**(case.query or {}), "dry_run": "true"}
        case.body = {**case.body, **spare_names({k: v for k, v in case.body.items() if k in ("tenant", "model")})}
    return case
