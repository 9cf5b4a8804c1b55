//! ResNet-50, which is too large to be committed: made once by `models/resnet50/make.py`.

use std::path::PathBuf;

use anyhow::Result;

use crate::setup;
use crate::shell::{program, root, run, step, target};

/// The file of ResNet-50 in `precision`, `fp32` or `fp16`. It is made if it is missing.
pub(super) fn make(precision: &str) -> Result<PathBuf> {
    let name = match precision {
        "fp32" => "resnet50.onnx".to_owned(),
        other => format!("resnet50-{other}.onnx"),
    };
    let path = target().join("models").join(name);
    if !path.exists() {
        let python = setup::python_environment("resnet50", "models/resnet50/requirements.txt")?;
        step(&format!("making ResNet-50, {precision}"));
        let script = root().join("models/resnet50/make.py");
        run(program(python).arg(script).arg(&path).arg(precision))?;
    }
    Ok(path)
}
