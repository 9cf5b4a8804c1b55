//! Models that are too large to be committed: made once by the scripts in `models/`.

use std::path::PathBuf;

use anyhow::Result;

use crate::setup;
use crate::shell::{program, root, run, step, target};

/// ResNet-50 in `precision`, `fp32` or `fp16`.
pub(super) fn resnet50(precision: &str) -> Result<PathBuf> {
    let file = match precision {
        "fp32" => "resnet50.onnx".to_owned(),
        other => format!("resnet50-{other}.onnx"),
    };
    made("resnet50", &file, &[precision])
}

/// The picture classifier.
pub(super) fn photos() -> Result<PathBuf> {
    made("photos", "photos.onnx", &[])
}

/// Two layers of an encoder.
pub(super) fn encoder() -> Result<PathBuf> {
    made("encoder", "encoder.onnx", &[])
}

/// The `file` that the script of the folder `name` makes. It is made if it is missing.
fn made(name: &str, file: &str, arguments: &[&str]) -> Result<PathBuf> {
    let path = target().join("models").join(file);
    if !path.exists() {
        let requirements = format!("models/{name}/requirements.txt");
        let python = setup::python_environment(&format!("{name}-python"), &requirements)?;
        step(&format!("making {file}"));
        let script = root().join(format!("models/{name}/make.py"));
        run(program(python).arg(script).arg(&path).args(arguments))?;
    }
    Ok(path)
}
