//! ResNet-50 on CUDA, compared with ONNX Runtime's bare session: the lane alone, and the whole
//! server over HTTP. The program `gpu` of `benches/` measures both.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::made_models;
use super::options::Options;
use super::shipped::Shipped;
use super::table::{Table, Verdict};
use crate::shell::{json_lines, json_of_lines, output, program, step, target};

/// The target: rows a second, as a ratio to the bare session.
const RATIO_MIN: f64 = 0.90;

/// The library that ONNX Runtime's own library loads for CUDA, from the same folder.
const CUDA_PROVIDER: &str = "libonnxruntime_providers_cuda.so";

/// Measure, or record what was measured on another machine (`--lines`).
pub(super) fn run(shipped: &Shipped, options: &Options) -> Result<()> {
    let lines = match &options.lines {
        Some(path) => {
            let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
            json_of_lines(&text).with_context(|| path.display().to_string())?
        }
        None => measure(shipped)?,
    };
    let mut table = Table::new("gpu", "cargo xtask bench gpu");
    for figures in lines {
        let what = figures["what"].as_str().context("a line of the program `gpu` has no `what`")?;
        let what = what.replace('_', " ");
        if what == "machine" {
            table.cores = figures["cores"].as_u64();
            table.row(what, figures.to_string(), figures);
        } else if let Some(ratio) = figures["ratio"].as_f64() {
            let what = format!("ResNet-50 {what}: rows a second over the bare loop");
            let verdict = Verdict::new("at least 0.90", ratio >= RATIO_MIN);
            table.row_to_reach(what, format!("{ratio:.2}"), figures, verdict);
        } else if let Some(times) = figures["times"].as_f64() {
            let what = format!("ResNet-50 {what}: rows a second over those without fixed sizes");
            table.row(what, format!("{times:.1}"), figures);
        } else if what.ends_with("lack of memory") {
            table.row(format!("ResNet-50 {what}"), "serves on".into(), figures);
        } else {
            let difference = figures["max_abs_difference"].to_string();
            table.row(format!("ResNet-50 {what}: largest difference"), difference, figures);
        }
    }
    table.finish()
}

fn measure(shipped: &Shipped) -> Result<Vec<Value>> {
    let library = library()?;
    let (fp32, fp16) = (made_models::resnet50("fp32")?, made_models::resnet50("fp16")?);
    step("measuring ResNet-50 on CUDA (about twelve minutes)");
    let mut gpu = program(target().join("release/gpu"));
    gpu.args([&fp32, &fp16, &shipped.gristmill]).env("ORT_DYLIB_PATH", library);
    json_lines(&mut gpu)
}

/// The path of ONNX Runtime's library, built with CUDA: the value of `ORT_DYLIB_PATH`.
///
/// # Errors
/// This machine has no NVIDIA GPU, or the variable names no such library.
pub(crate) fn library() -> Result<PathBuf> {
    let gpus = output(program("nvidia-smi").arg("-L")).unwrap_or_default();
    ensure!(!gpus.trim().is_empty(), "there is no CUDA here: nvidia-smi finds no GPU");
    let has_cuda_provider =
        |path: &PathBuf| path.parent().is_some_and(|folder| folder.join(CUDA_PROVIDER).is_file());
    let library = std::env::var_os("ORT_DYLIB_PATH").map(PathBuf::from);
    library.filter(has_cuda_provider).with_context(|| {
        format!(
            "there is no CUDA here: ORT_DYLIB_PATH names no library in a folder with \
             {CUDA_PROVIDER}"
        )
    })
}
