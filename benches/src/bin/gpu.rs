//! ResNet-50 on CUDA, FP32 and FP16, compared with the bare session: the lane alone with batches of
//! 1 to 128, and the whole server, from HTTP clients through its process to the GPU and back.
//!
//! `gpu <resnet50-fp32.onnx> <resnet50-fp16.onnx> <gristmill binary> [--provider cuda|cpu]
//! [--batches N,...] [--seconds N]`. `ORT_DYLIB_PATH` must name a library built with CUDA; the
//! program needs no other file of the repository. It prints one JSON object a line; `cargo xtask
//! bench gpu` runs it and records them. To try it without a GPU, use `--provider cpu`, few and
//! small batches, and any models with one input of which only the rows vary.

use std::num::NonZero;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use gristmill_backend::{LoadOptions, ProviderKind};
use gristmill_benches::compare::Comparison;
use gristmill_benches::end_to_end;
use gristmill_benches::harness::{Harness, on, shape_of, tensor_from};
use gristmill_core::{Dtype, Tensor, TensorInfo};
use serde_json::{Value, json};

const USAGE: &str = "usage: gpu <resnet50-fp32.onnx> <resnet50-fp16.onnx> <gristmill binary> \
                     [--provider cuda|cpu] [--batches N,...] [--seconds N]";

const LANE_BATCHES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
const END_TO_END_BATCHES: [usize; 4] = [1, 8, 32, 128];

/// The number of different pictures that clients send. Together they do not fit into a processor's
/// cache.
const PICTURES: usize = 128;

/// The number of clients for each row of a batch, as long as there are not too many.
const CLIENTS_PER_ROW: usize = 4;

/// The most clients. They have one address, which a server does not give all of its connections.
/// These are two for each row of the largest batch, so full batches are always queued.
const CLIENTS_MAX: usize = 256;

/// The time that each side runs in each round, unless `--seconds` says another.
const TIME: Duration = Duration::from_secs(3);
const WARM_UP: Duration = Duration::from_secs(2);

/// The largest difference between CUDA's outputs and the processor's, relative to the largest
/// output. TF32 and FP16 have a fraction of ten bits.
const DIFFERENCE_MAX: f32 = 0.02;

fn main() -> Result<()> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let Arguments { fp32, fp16, gristmill, provider, batches, time } = arguments;
    let options = on(provider);
    let harness = Harness::new()?;
    report("machine", machine());
    for (precision, path) in [("fp32", &fp32), ("fp16", &fp16)] {
        let (input, figures) = check(&harness, path, &options)?;
        report(&format!("{precision}_outputs"), figures);
        let rows = (0..PICTURES).map(|seed| pictures(&harness, &input, 1, seed));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let comparison = |batch| Comparison {
            path,
            // All runs have this size, because on CUDA a run of another size than the one before
            // takes longer. Each measurement begins and ends with batches of fewer rows.
            options: LoadOptions { allowed_batch_sizes: vec![batch], ..options.clone() },
            rows: &rows,
            batch,
            clients: (batch * CLIENTS_PER_ROW).min(CLIENTS_MAX),
            time,
            warm_up: WARM_UP,
        };
        for batch in batches.as_deref().unwrap_or(&LANE_BATCHES) {
            report(&format!("{precision}_batch_{batch}"), comparison(*batch).run(&harness)?);
        }
        let server = end_to_end::serve(&harness, &gristmill, path)?;
        for batch in batches.as_deref().unwrap_or(&END_TO_END_BATCHES) {
            for (way, figures) in end_to_end::compare(&harness, &server, &comparison(*batch))? {
                report(&format!("{precision}_batch_{batch}_{way}"), figures);
            }
        }
    }
    Ok(())
}

struct Arguments {
    fp32: String,
    fp16: String,
    gristmill: PathBuf,
    provider: ProviderKind,
    /// The batches to measure. None for the usual ones.
    batches: Option<Vec<usize>>,
    time: Duration,
}

impl Arguments {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let (mut paths, mut provider, mut batches) = (Vec::new(), ProviderKind::Cuda, None);
        let mut time = TIME;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--provider" => {
                    provider = match arguments.next().as_deref() {
                        Some("cuda") => ProviderKind::Cuda,
                        Some("cpu") => ProviderKind::Cpu,
                        _ => bail!(USAGE),
                    };
                }
                "--batches" => {
                    let sizes = arguments.next().context(USAGE)?;
                    let sizes: Result<Vec<usize>, _> = sizes.split(',').map(str::parse).collect();
                    batches = Some(sizes.context(USAGE)?);
                }
                "--seconds" => {
                    let seconds = arguments.next().context(USAGE)?;
                    time = Duration::from_secs(seconds.parse().context(USAGE)?);
                }
                _ => paths.push(argument),
            }
        }
        let paths: [String; 3] = paths.try_into().map_err(|_| anyhow!(USAGE))?;
        let [fp32, fp16, gristmill] = paths;
        Ok(Self { fp32, fp16, gristmill: gristmill.into(), provider, batches, time })
    }
}

/// The machine that is measured: its processors, and its GPUs with their driver.
fn machine() -> Value {
    let query = ["--query-gpu=name,driver_version", "--format=csv,noheader"];
    let output = Command::new("nvidia-smi").args(query).output().ok();
    let gpus = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let cores = std::thread::available_parallelism().map(NonZero::get).ok();
    json!({ "cores": cores, "gpus": gpus })
}

fn report(what: &str, mut figures: Value) {
    figures["what"] = what.into();
    println!("{figures}");
}

/// Compare the outputs of the provider with those of the processor. Returns the model's input and
/// the differences.
fn check(harness: &Harness, path: &str, options: &LoadOptions) -> Result<(TensorInfo, Value)> {
    let mut model = harness
        .load_with(path, options)
        .with_context(|| format!("{path} does not load on {:?}", options.providers))?;
    let mut reference = harness.load(path)?;
    let info = model.info.inputs[0].clone();
    let (mut difference, mut largest) = (0_f32, 0_f32);
    // The same size twice, and smaller after larger, so that an output that was not written anew is
    // found.
    for (seed, rows) in [4, 4, 1, 2].into_iter().enumerate() {
        let input = pictures(harness, &info, rows, seed)?;
        let computed = values(&model.instances[0].run(std::slice::from_ref(&input))?[0])?;
        let expected = values(&reference.instances[0].run(&[input])?[0])?;
        ensure!(
            computed.len() == expected.len(),
            "{} values, not {}",
            computed.len(),
            expected.len()
        );
        for (computed, expected) in computed.iter().zip(&expected) {
            ensure!(computed.is_finite(), "{path}: computes {computed}, the processor {expected}");
            difference = difference.max((computed - expected).abs());
            largest = largest.max(expected.abs());
        }
    }
    let bound = largest * DIFFERENCE_MAX;
    ensure!(difference <= bound, "{path}: outputs differ by {difference}, more than {bound}");
    Ok((info, json!({ "max_abs_difference": difference, "largest_output": largest })))
}

/// Rows of noise, different for each seed.
fn pictures(harness: &Harness, input: &TensorInfo, rows: usize, seed: usize) -> Result<Tensor> {
    let noise = |at: usize| {
        let mixed = (at + seed * 7_919).wrapping_mul(2_654_435_761) >> 8;
        (mixed % 2_001) as f32 / 1_000.0 - 1.0
    };
    Ok(tensor_from(&harness.pool, input.dtype, &shape_of(input, rows)?, noise))
}

fn values(tensor: &Tensor) -> Result<Vec<f32>> {
    match (tensor.as_f32(), tensor.dtype()) {
        (Some(values), _) => Ok(values.to_vec()),
        (None, Dtype::Float16) => {
            let values: &[half::f16] = bytemuck::cast_slice(tensor.as_bytes());
            Ok(values.iter().copied().map(f32::from).collect())
        }
        (None, other) => bail!("output is {other}, expected FP32 or FP16"),
    }
}
