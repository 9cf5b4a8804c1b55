#!/usr/bin/env python3
"""The server in a container of the image, for the benchmarks beside this file:

    node benches/servers/ready.mjs benches/servers/container.py

It takes the arguments of `gristmill`. The image's root file system is the one of
`host/deploy/check/check.py check`, in target/deploy-check; GRISTMILL_ROOTFS names another one.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "host/deploy/check"))
from container import NOBODY, Container  # noqa: E402


def main():
    arguments = sys.argv[1:]
    at = arguments.index("--data-dir") + 1
    data, arguments[at] = Path(arguments[at]), "/data"
    [seccomp] = ROOT.glob("target/seccomp/**/seccomp.json")
    container = Container(argparse.Namespace(root=ROOT, work=ROOT / "target", seccomp=seccomp))
    container.root = Path(os.environ.get("GRISTMILL_ROOTFS", ROOT / "target/deploy-check/rootfs"))
    config = container.config(data)
    config["process"]["args"][1:] = arguments
    kept = ["GRISTMILL_ADMIN_TOKEN", "GRISTMILL_LOG"]
    config["process"]["env"] = ["PATH=/usr/bin",
                                "ORT_DYLIB_PATH=/usr/lib/gristmill/libonnxruntime.so",
                                *(f"{name}={os.environ[name]}" for name in kept)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        container.write_bundle(folder, config)
        if os.getuid() == 0:
            for path in [data, *data.rglob("*")]:
                os.chown(path, NOBODY, NOBODY)
        command = container.crun(folder, "run", "--bundle", folder, container.name)
        process = subprocess.Popen(container.as_nobody(folder, command))
        # crun passes it on to the server.
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        sys.exit(process.wait())


if __name__ == "__main__":
    main()
