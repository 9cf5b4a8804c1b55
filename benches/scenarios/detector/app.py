"""Boxes of a detector as YOLO gives them, [1, 84, 8400]: the best class of each, and which ones stay."""

from gristmill_plugin import Prepared, Processor, Response, export
from gristmill_plugin import numpy as np


@export
class Detector(Processor):
    def preprocess(self, context, request):
        # A model that gives back what it gets stands in place of the detector.
        return Prepared({"input": np.frombuffer(request.body, np.float32).reshape(1, -1)})

    def postprocess(self, context, outputs, state):
        out = np.asarray(outputs["output"]).reshape(84, 8400)
        scores = out[4:].max(axis=0)
        keep = np.flatnonzero(scores > 0.25)
        scores, classes = scores[keep], out[4:, keep].argmax(axis=0)
        center, size = out[:2, keep].T, out[2:4, keep].T
        boxes = np.concatenate([center - size / 2, center + size / 2], axis=1)
        best = np.nms(boxes, scores, 0.45)
        return Response.json(
            {"boxes": boxes[best], "scores": scores[best], "classes": classes[best]}
        )
