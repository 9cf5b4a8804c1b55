//! Models that are too large to be committed: made once by the scripts in `models/`.

use std::path::PathBuf;

use anyhow::Result;

use crate::setup;
use crate::shell::{program, root, run, step, target};

/// ResNet-50 in FP32.
pub(super) fn resnet50() -> Result<PathBuf> {
    made("resnet50", "resnet50.onnx", &["fp32"])
}

/// ResNet-50 in FP16.
pub(super) fn resnet50_fp16() -> Result<PathBuf> {
    made("resnet50", "resnet50-fp16.onnx", &["fp16"])
}

/// The picture classifier.
pub(super) fn photos() -> Result<PathBuf> {
    made("photos", "photos.onnx", &[])
}

/// Two layers of an encoder.
pub(super) fn encoder() -> Result<PathBuf> {
    made("encoder", "encoder.onnx", &[])
}

/// The same for texts of any number of tokens.
pub(super) fn encoder_of_texts() -> Result<PathBuf> {
    made("encoder", "encoder-tokens.onnx", &["texts"])
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
