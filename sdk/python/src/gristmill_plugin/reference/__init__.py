"""A host in plain Python, for tests: the interfaces of `wit/` under the names of the bindings.

It has no limits on memory, time and log. Speed does not matter here, agreement with the server
does. Plugins use it through `gristmill_plugin.testing`.
"""
