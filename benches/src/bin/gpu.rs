//! ResNet-50 on CUDA, FP32 and FP16, batch 1 to 128: the lane against the bare session, no HTTP.
//!
//! `gpu <resnet50-fp32.onnx> <resnet50-fp16.onnx>`, with `ORT_DYLIB_PATH` naming a library built with CUDA, needs
//! nothing of the repository. Prints one JSON object a line; `cargo xtask bench gpu` runs it and records them.
//! Not run on a GPU yet.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use gristmill_backend::{LoadOptions, ProviderKind};
use gristmill_benches::compare::Comparison;
use gristmill_benches::harness::{Harness, on, tensor_from};
use gristmill_core::{Dtype, Tensor};
use serde_json::{Value, json};

const BATCHES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
const ROW: [usize; 4] = [1, 3, 224, 224];

/// Different pictures that clients send: together more than a processor's cache holds.
const PICTURES: usize = 128;

/// Clients for each row of a batch, so that full batches are always queued.
const CLIENTS_PER_ROW: usize = 4;

/// How far CUDA's outputs may be from the processor's, as a part of the largest: TF32 and FP16 have ten bits.
const DIFFERENCE_MAX: f32 = 0.02;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [fp32, fp16] = &args[..] else {
        bail!("usage: gpu <resnet50-fp32.onnx> <resnet50-fp16.onnx>");
    };
    let harness = Harness::new()?;
    for (precision, path) in [("fp32", fp32), ("fp16", fp16)] {
        let dtype = report(&format!("{precision}_outputs"), check(&harness, path)?);
        let rows: Vec<_> = (0..PICTURES).map(|seed| pictures(&harness, dtype, 1, seed)).collect();
        for batch in BATCHES {
            let comparison = Comparison {
                path,
                options: on_cuda(),
                rows: &rows,
                batch,
                clients: batch * CLIENTS_PER_ROW,
                time: Duration::from_secs(3),
                warm_up: Duration::from_secs(2),
            };
            report(&format!("{precision}_batch_{batch}"), (comparison.run(&harness)?, dtype));
        }
    }
    Ok(())
}

fn report<T>(what: &str, (mut figures, rest): (Value, T)) -> T {
    figures["what"] = what.into();
    println!("{figures}");
    rest
}

/// Convolutions are chosen by heuristics, not by trying all for each new size of batch.
fn on_cuda() -> LoadOptions {
    let search = ("cudnn_conv_algo_search".to_owned(), "HEURISTIC".to_owned());
    LoadOptions { cuda_options: [search].into(), ..on(ProviderKind::Cuda) }
}

/// What CUDA computes against what the processor does, and the model's element type.
fn check(harness: &Harness, path: &str) -> Result<(Value, Dtype)> {
    let mut cuda = harness.load_with(path, &on_cuda()).context("there is no CUDA here")?;
    let mut cpu = harness.load(path)?;
    let dtype = cuda.info.inputs[0].dtype;
    let (mut difference, mut largest) = (0_f32, 0_f32);
    // The same size twice, and smaller after larger: a stale output would show.
    for (seed, rows) in [4, 4, 1, 2].into_iter().enumerate() {
        let input = pictures(harness, dtype, rows, seed);
        let on_cuda = values(&cuda.instances[0].run(std::slice::from_ref(&input))?[0])?;
        let on_cpu = values(&cpu.instances[0].run(&[input])?[0])?;
        ensure!(on_cuda.len() == on_cpu.len(), "{} values, not {}", on_cuda.len(), on_cpu.len());
        for (cuda, cpu) in on_cuda.iter().zip(&on_cpu) {
            ensure!(cuda.is_finite(), "{path}: CUDA computes {cuda}, the processor {cpu}");
            difference = difference.max((cuda - cpu).abs());
            largest = largest.max(cpu.abs());
        }
    }
    let bound = largest * DIFFERENCE_MAX;
    ensure!(difference <= bound, "{path}: outputs differ by {difference}, more than {bound}");
    Ok((json!({ "max_abs_difference": difference, "largest_output": largest }), dtype))
}

/// Rows of noise, of another kind for each seed.
fn pictures(harness: &Harness, dtype: Dtype, rows: usize, seed: usize) -> Tensor {
    let shape = [rows, ROW[1], ROW[2], ROW[3]];
    let noise = |at: usize| {
        let mixed = (at + seed * 7_919).wrapping_mul(2_654_435_761) >> 8;
        (mixed % 2_001) as f32 / 1_000.0 - 1.0
    };
    tensor_from(&harness.pool, dtype, &shape, noise)
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
