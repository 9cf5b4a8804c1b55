//! The benchmarks that programs of `benches/` measure. They print rows with targets.

use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::harness::Bench;
use super::models;
use crate::setup;
use crate::shell::{json_lines, json_of_lines, output, program, step};

/// The library that ONNX Runtime's own library loads for CUDA, from the same folder.
const CUDA_PROVIDER: &str = "libonnxruntime_providers_cuda.so";

pub(super) fn batch(bench: &mut Bench<'_>) -> Result<()> {
    models::resnet50()?;
    models::encoder_of_texts()?;
    step("measuring the batcher (about five minutes)");
    let rows = bench.lines("batch", &[])?;
    bench.add_rows(rows)
}

pub(super) fn control(bench: &mut Bench<'_>) -> Result<()> {
    step("measuring releases (about fifteen minutes)");
    let rows = bench.cases("control", &[])?;
    bench.add_rows(rows)
}

pub(super) fn neighbour(bench: &mut Bench<'_>) -> Result<()> {
    if bench.options.build {
        setup::build_other_languages(&bench.gristmill)?;
    }
    step("measuring a tenant beside hostile ones (about half an hour)");
    let redis = setup::install_redis()?;
    let rows = bench.cases("neighbour", &[redis.as_os_str()])?;
    bench.add_rows(rows)
}

pub(super) fn pace(bench: &mut Bench<'_>) -> Result<()> {
    step("measuring plugin calls of a busy tenant (about ten minutes)");
    let before = bench.options.before.as_ref();
    if before.is_some() {
        bench.table.command.push_str(" --before BINARY");
    }
    let before = before.map_or(OsStr::new("-"), |before| before.as_os_str());
    let rows = bench.cases("pace", &[before])?;
    bench.add_rows(rows)
}

/// Measure, or record what was measured on another machine (`--lines`).
pub(super) fn gpu(bench: &mut Bench<'_>) -> Result<()> {
    if let Some(path) = &bench.options.lines {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let rows = json_of_lines(&text).with_context(|| path.display().to_string())?;
        return bench.add_rows(rows);
    }
    let library = cuda_library()?;
    let (fp32, fp16) = (models::resnet50()?, models::resnet50_fp16()?);
    step("measuring ResNet-50 on CUDA (about twelve minutes)");
    let mut gpu = program(bench.binary("gpu"));
    gpu.args([&fp32, &fp16, &bench.gristmill]).env("ORT_DYLIB_PATH", library);
    bench.add_rows(json_lines(&mut gpu)?)
}

/// The path of ONNX Runtime's library, built with CUDA: the value of `ORT_DYLIB_PATH`.
///
/// # Errors
/// This machine has no NVIDIA GPU, or the variable names no such library.
pub(super) fn cuda_library() -> Result<PathBuf> {
    let gpus = output(program("nvidia-smi").arg("-L")).unwrap_or_default();
    ensure!(!gpus.trim().is_empty(), "there is no CUDA here: nvidia-smi finds no GPU");
    let has_cuda_provider =
        |path: &PathBuf| path.parent().is_some_and(|folder| folder.join(CUDA_PROVIDER).is_file());
    let library = std::env::var_os("ORT_DYLIB_PATH").map(PathBuf::from);
    library.filter(has_cuda_provider).with_context(|| {
        format!("there is no CUDA here: ORT_DYLIB_PATH names no library beside {CUDA_PROVIDER}")
    })
}
