"""Start the Triton server that the package nvidia-pytriton carries, with the models of this folder.

    venv/bin/python serve.py --port 8000

PyTriton itself is not used: it sends each tensor to a process of its own. The models here are those of Triton's
Python backend, which runs them in the processes that it starts.
"""

import argparse
import os
import shutil
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8000)
    port = parser.parse_args().port

    package = Path(find_spec("pytriton").origin).parent / "tritonserver"
    # The wheel has a stub, the process that runs a model, for each version of Python. Triton looks
    # for it among the files of the backend.
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = package / "backends/python/triton_python_backend_stub"
    shutil.copy(package / "python_backend_stubs" / version / stub.name, stub)
    server = package / "bin/tritonserver"
    for program in (server, stub):
        program.chmod(0o755)

    # The stub embeds Python: it needs the library of this Python, and takes the packages of the
    # environment whose interpreter it finds first.
    libraries = [sysconfig.get_config_var("LIBDIR"), os.environ.get("LD_LIBRARY_PATH", "")]
    os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, libraries))
    os.environ["PATH"] = ":".join((str(Path(sys.executable).parent), os.environ["PATH"]))
    arguments = [
        f"--model-repository={HERE / 'models'}",
        f"--backend-directory={package / 'backends'}",
        "--http-address=127.0.0.1",
        f"--http-port={port}",
        "--allow-grpc=false",
        "--allow-metrics=false",
        "--log-info=false",
    ]
    os.execv(server, [str(server), *arguments])


if __name__ == "__main__":
    main()
