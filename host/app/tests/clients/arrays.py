"""Compares what a plugin found for expressions of arrays with NumPy.

Its input is a list in JSON of `[expression, found]`. The first argument is the folder of
`array_table`.
"""

import json
import sys
import warnings

import numpy

sys.path.insert(0, sys.argv[1])
import array_table  # noqa: E402

warnings.simplefilter("ignore")
known = array_table.names(numpy)
wrong = [
    array_table.compare(numpy, expression, known, found)
    for expression, found in json.load(sys.stdin)
]
sys.exit("\n".join(one for one in wrong if one) or 0)
