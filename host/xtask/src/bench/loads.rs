//! The loads: services of the demo's tenant and models, with the request that clients repeat.

use std::path::PathBuf;

use anyhow::Result;
use gristmill_client::{BinaryTensor, HEADER_LENGTH, infer_body};
use serde_json::json;

use self::Sent::{File, Row};
use crate::bench::clients::wrk_script;
use crate::shell::{root, target};

#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// The path of a pipeline, or of a model of the Open Inference Protocol.
    pub(crate) path: &'static str,
    sent: Sent,
}

#[derive(Clone, Copy)]
enum Sent {
    File(&'static str),
    /// One row of the model's `input`, FP32 of this shape.
    Row(&'static [usize]),
}

pub(super) const RANKER: Load = load("v1/demo/infer/ranker", File("benches/scenarios/ranker.json"));
pub(super) const DIGITS: Load = load("v1/demo/infer/digits", File("models/digits/samples/7.png"));
pub(super) const PHOTOS: Load = load("v1/demo/infer/photos", File("benches/scenarios/photo.jpg"));
pub(super) const V2_RANKER: Load = load("v2/models/ranker", Row(&[32]));
pub(super) const V2_DIGITS: Load = load("v2/models/digits", Row(&[1, 28, 28]));
pub(super) const RESNET50: Load = load("v2/models/resnet50", Row(&[3, 224, 224]));
pub(super) const ENCODER: Load = load("v2/models/encoder", Row(&[64, 384]));
/// A model that returns its input, for a large tensor: a picture's.
pub(super) const IDENTITY: Load = load("v2/models/identity", Row(&[3 * 224 * 224]));

/// Those of a server with the picture classifier.
pub(crate) const LOADS: [Load; 4] = [RANKER, DIGITS, PHOTOS, V2_RANKER];

const fn load(path: &'static str, sent: Sent) -> Load {
    Load { path, sent }
}

impl Load {
    /// The name of the service or the model.
    pub(super) fn model(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    /// The same, and the protocol if it is not `/v1`.
    pub(super) fn name(&self) -> String {
        match self.sent {
            File(_) => self.model().to_owned(),
            Row(_) => format!("/v2, {}", self.model()),
        }
    }

    /// The flags of `gristmill bench` that say what is sent.
    pub(crate) fn flags(&self) -> [&'static str; 2] {
        match self.sent {
            File(file) => ["--body", file],
            Row(_) => ["--rows", "1"],
        }
    }

    /// The shape of the row that is sent. It is empty for a file.
    pub(super) fn row(&self) -> &'static [usize] {
        match self.sent {
            File(_) => &[],
            Row(shape) => shape,
        }
    }

    /// The file that is sent.
    pub(super) fn file(&self) -> PathBuf {
        root().join(self.flags()[1])
    }

    /// Whether a picture is sent.
    pub(super) fn is_picture(&self) -> bool {
        self.content_type().starts_with("image/")
    }

    pub(super) fn content_type(&self) -> &'static str {
        match self.sent {
            File(file) if file.ends_with(".png") => "image/png",
            File(file) if file.ends_with(".jpg") => "image/jpeg",
            File(_) => "application/json",
            Row(_) => "application/octet-stream",
        }
    }

    /// The path to which wrk sends the request.
    pub(super) fn wrk_path(&self) -> String {
        match self.sent {
            File(_) => format!("/{}", self.path),
            Row(_) => format!("/{}/infer", self.path),
        }
    }

    /// Write wrk's script, and the body if it is a row: as perf_analyzer sends it, in binary, with
    /// the wish for a binary answer.
    pub(super) fn wrk_script(&self) -> Result<PathBuf> {
        let content_type = ("content-type", self.content_type());
        let Row(shape) = self.sent else {
            return wrk_script(self.model(), &self.file(), &[content_type]);
        };
        let shape = [&[1], shape].concat();
        let row = 0.5_f32.to_le_bytes().repeat(shape.iter().product());
        let input = BinaryTensor { name: "input", datatype: "FP32", shape: &shape, data: &row };
        let output = json!({ "name": "output", "parameters": { "binary_data": true } });
        let sent = infer_body(&[input], json!({ "id": "", "outputs": [output] }));
        let name = format!("oip-{}", self.model());
        let body = target().join(format!("{name}.body"));
        std::fs::write(&body, &sent.bytes)?;
        wrk_script(&name, &body, &[content_type, (HEADER_LENGTH, &sent.header_length)])
    }
}
