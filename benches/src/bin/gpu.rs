//! ResNet-50 on CUDA, FP32 and FP16, against the bare session: the lane by itself, batch 1 to 128,
//! and the server end to end, from HTTP clients through its process to the GPU and back.
//!
//! `gpu <resnet50-fp32.onnx> <resnet50-fp16.onnx> <gristmill binary> [--provider cuda|cpu]
//! [--batches N,...]`, with `ORT_DYLIB_PATH` naming a library built with CUDA, needs nothing of the
//! repository. Prints one JSON object a line; `cargo xtask bench gpu` runs it and records them.
//! `--provider cpu` and few, small batches are for trying it where there is no GPU, with any models
//! of one input in which only the rows vary. Not run on a GPU yet.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use gristmill_backend::{LoadOptions, ProviderKind};
use gristmill_benches::compare::Comparison;
use gristmill_benches::end_to_end;
use gristmill_benches::harness::{Harness, on, shape_of, tensor_from};
use gristmill_core::{Dtype, Tensor, TensorInfo};
use serde_json::{Value, json};

const USAGE: &str = "usage: gpu <resnet50-fp32.onnx> <resnet50-fp16.onnx> <gristmill binary> \
                     [--provider cuda|cpu] [--batches N,...]";

const LANE_BATCHES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
const END_TO_END_BATCHES: [usize; 4] = [1, 8, 32, 128];

/// Different pictures that clients send: together more than a processor's cache holds.
const PICTURES: usize = 128;

/// Clients for each row of a batch, so that full batches are always queued.
const CLIENTS_PER_ROW: usize = 4;

const TIME: Duration = Duration::from_secs(3);
const WARM_UP: Duration = Duration::from_secs(2);

/// The largest difference between CUDA's outputs and the processor's, relative to the largest
/// output: TF32 and FP16 have ten bits.
const DIFFERENCE_MAX: f32 = 0.02;

fn main() -> Result<()> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let Arguments { fp32, fp16, gristmill, provider, batches } = arguments;
    let options = options(provider);
    let harness = Harness::new()?;
    for (precision, path) in [("fp32", &fp32), ("fp16", &fp16)] {
        let (input, figures) = check(&harness, path, &options)?;
        report(&format!("{precision}_outputs"), figures);
        let rows = (0..PICTURES).map(|seed| pictures(&harness, &input, 1, seed));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let comparison = |batch| Comparison {
            path,
            options: options.clone(),
            rows: &rows,
            batch,
            clients: batch * CLIENTS_PER_ROW,
            time: TIME,
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
    /// Instead of those that are measured otherwise.
    batches: Option<Vec<usize>>,
}

impl Arguments {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let (mut paths, mut provider, mut batches) = (Vec::new(), ProviderKind::Cuda, None);
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
                _ => paths.push(argument),
            }
        }
        let paths: [String; 3] = paths.try_into().map_err(|_| anyhow!(USAGE))?;
        let [fp32, fp16, gristmill] = paths;
        Ok(Self { fp32, fp16, gristmill: gristmill.into(), provider, batches })
    }
}

fn report(what: &str, mut figures: Value) {
    figures["what"] = what.into();
    println!("{figures}");
}

/// On CUDA convolutions are chosen by heuristics, not by trying all for each new size of batch.
fn options(provider: ProviderKind) -> LoadOptions {
    let search = ("cudnn_conv_algo_search".to_owned(), "HEURISTIC".to_owned());
    match provider {
        ProviderKind::Cuda => LoadOptions { cuda_options: [search].into(), ..on(provider) },
        ProviderKind::Cpu | ProviderKind::Tract => on(provider),
    }
}

/// The model's input, and what the provider computes against what the processor does.
fn check(harness: &Harness, path: &str, options: &LoadOptions) -> Result<(TensorInfo, Value)> {
    let mut model = harness
        .load_with(path, options)
        .with_context(|| format!("{path} does not load on {:?}", options.providers))?;
    let mut reference = harness.load(path)?;
    let info = model.info.inputs[0].clone();
    let (mut difference, mut largest) = (0_f32, 0_f32);
    // The same size twice, and smaller after larger: a stale output would show.
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

/// Rows of noise, of another kind for each seed.
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
