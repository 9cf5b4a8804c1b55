"""Checks of host/deploy. Prints what was checked, what was not and why, and how many passed.

`check`, which `cargo xtask test` calls, checks the chart, the compose file, the Debian package, and
a container of the image. `base` checks nothing: it writes the Kustomize base and the settings of
the chart's schema.
"""

import argparse
import time
from pathlib import Path

from chart import Chart
from compose import Compose
from container import Container
from debian import Debian, NotRun

PARTS = [Chart, Compose, Debian, Container]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["check", "base"])
    for name, about in [
        ("gristmill", "the server's program"),
        ("shipped", "the program of `cargo xtask dist`, if it is there, for the size of the image"),
        ("onnxruntime", "its library"),
        ("runtimes", "the folder of languages' runtimes"),
        ("components", "the folder of built plugins"),
        ("helm", "the folder with helm and kubectl"),
        ("seccomp", "Podman's default profile"),
        ("work", "a folder that is kept from one check to the next"),
    ]:
        parser.add_argument(f"--{name}", type=Path, help=about)
    parser.add_argument("--only", help="checks with this in their names")
    options = parser.parse_args()
    options.root = Path(__file__).resolve().parents[3]
    if options.what == "base":
        return Chart(options).write_base()
    options.work = options.work.absolute()
    options.work.mkdir(parents=True, exist_ok=True)
    passed = 0
    for part in PARTS:
        for check in part(options).checks():
            if options.only and options.only not in check.__qualname__.lower():
                continue
            began = time.monotonic()
            try:
                checked = check()
            except NotRun as why:
                print(f"not run: {why}", flush=True)
                continue
            print(f"checked {checked} ({time.monotonic() - began:.1f} s)", flush=True)
            passed += 1
    print(passed)


if __name__ == "__main__":
    main()
