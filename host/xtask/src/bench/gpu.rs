//! ResNet-50 on CUDA: the lane, and the server end to end over HTTP, each against the bare session.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::table::Table;
use super::{Shipped, json_lines, resnet50};
use crate::shell::{output, program, step, target};

const RATIO_MIN: f64 = 0.90;

pub(crate) fn run(shipped: &Shipped) -> Result<()> {
    let library = library()?;
    let (fp32, fp16) = (resnet50("fp32")?, resnet50("fp16")?);
    step("measuring ResNet-50 on CUDA (about twelve minutes)");
    let mut gpu = program(target().join("release/gpu"));
    gpu.args([&fp32, &fp16, &shipped.gristmill]).env("ORT_DYLIB_PATH", library);
    let lines = json_lines(&mut gpu)?;
    let mut table = Table::new("gpu", "cargo xtask bench gpu");
    for figures in lines {
        let what = figures["what"].as_str().context("a line without what")?.replace('_', " ");
        if let Some(ratio) = figures["ratio"].as_f64() {
            let what = format!("ResNet-50 {what}: rows a second over the bare loop");
            let target = ("at least 0.90", ratio >= RATIO_MIN);
            table.row_to_reach(what, format!("{ratio:.2}"), figures, target);
        } else {
            let difference = figures["max_abs_difference"].to_string();
            table.row(format!("ResNet-50 {what}: largest difference"), difference, figures);
        }
    }
    table.finish()
}

/// ONNX Runtime built with CUDA, on a machine that has a GPU for it.
pub(crate) fn library() -> Result<PathBuf> {
    let gpus = output(program("nvidia-smi").arg("-L")).unwrap_or_default();
    ensure!(!gpus.trim().is_empty(), "there is no CUDA here: nvidia-smi finds no GPU");
    let library = std::env::var_os("ORT_DYLIB_PATH")
        .map(PathBuf::from)
        .filter(|path| path.parent().is_some_and(|beside| beside.join(CUDA_PROVIDER).is_file()));
    library.with_context(|| {
        format!(
            "there is no CUDA here: ORT_DYLIB_PATH names no library with {CUDA_PROVIDER} beside it"
        )
    })
}

const CUDA_PROVIDER: &str = "libonnxruntime_providers_cuda.so";
