"""The newcomer's model: scikit-learn's RandomForest on the wines, as ONNX. Written to the first argument."""

import sys

from skl2onnx import to_onnx
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

features, labels = load_wine(return_X_y=True)
features = features.astype("float32")
forest = RandomForestClassifier(n_estimators=50, random_state=0).fit(features, labels)
model = to_onnx(forest, features[:1], options={"zipmap": False})
with open(sys.argv[1], "wb") as file:
    file.write(model.SerializeToString())
