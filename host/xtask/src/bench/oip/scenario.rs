//! The models that clients of the Open Inference Protocol run, and wrk's request to each.

use std::path::{Path, PathBuf};

use anyhow::Result;
use gristmill_client::{BinaryTensor, HEADER_LENGTH, infer_body};
use serde_json::json;

use crate::bench::wrk;
use crate::server::Server;
use crate::shell::{root, target};

/// A model and the shape of one row of its `input`.
pub(crate) struct Scenario {
    pub(crate) model: &'static str,
    pub(super) row: &'static [usize],
}

pub(crate) const RANKER: Scenario = Scenario { model: "ranker", row: &[32] };
pub(crate) const DIGITS: Scenario = Scenario { model: "digits", row: &[1, 28, 28] };
pub(crate) const RESNET50: Scenario = Scenario { model: "resnet50", row: &[3, 224, 224] };
/// A model that returns its input, for a large tensor: a picture's.
pub(crate) const IDENTITY: Scenario = Scenario { model: "identity", row: &[3 * 224 * 224] };
const IDENTITY_FILE: &str = "host/app/tests/fixtures/identity-fp32.onnx";

/// ONNX Runtime's threads for ResNet-50, in the server and in the bare loop.
pub(super) const RESNET50_THREADS: usize = 1;

/// Upload the models with large inputs, and let the demo's tenant run them as well as its own.
pub(crate) fn deploy_large(server: &Server, resnet50: &Path) -> Result<()> {
    let admin = &server.admin;
    admin.put_file("models/identity", &root().join(IDENTITY_FILE))?;
    let config = json!({ "threads": RESNET50_THREADS, "instances": 1, "providers": ["cpu"] });
    admin.put_file("models/resnet50", resnet50)?;
    admin.put_json("models/resnet50/config", &config)?;
    let models = ["digits", "ranker", "identity", "resnet50"];
    let tenant = json!({ "open": true, "default_pipeline": "digits", "models": models });
    admin.put_json("tenants/demo", &tenant)
}

impl Scenario {
    /// The URL of an inference on `server`.
    pub(super) fn url(&self, server: &Server) -> String {
        format!("{}/v2/models/{}/infer", server.url, self.model)
    }

    /// Write wrk's script and the body that it sends. It is the body that perf_analyzer sends: one
    /// row in binary, and it asks for a binary answer.
    pub(crate) fn write_script(&self) -> Result<PathBuf> {
        let shape: Vec<usize> = std::iter::once(1).chain(self.row.iter().copied()).collect();
        let row = 0.5_f32.to_le_bytes().repeat(shape.iter().product());
        let input = BinaryTensor { name: "input", datatype: "FP32", shape: &shape, data: &row };
        let output = json!({ "name": "output", "parameters": { "binary_data": true } });
        let sent = infer_body(&[input], json!({ "id": "", "outputs": [output] }));
        let name = format!("oip-{}", self.model);
        let body = target().join(format!("{name}.body"));
        std::fs::write(&body, &sent.bytes)?;
        let headers = [
            ("content-type", "application/octet-stream"),
            (HEADER_LENGTH, sent.header_length.as_str()),
        ];
        wrk::write_script(&name, &body, &headers)
    }
}
