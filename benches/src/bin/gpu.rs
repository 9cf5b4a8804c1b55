//! ResNet-50 on CUDA, FP32 and FP16, compared with the bare session: the lane alone with batches of
//! 1 to 128, and the whole server, from HTTP clients through its process to the GPU and back.
//!
//! `gpu <resnet50-fp32.onnx> <resnet50-fp16.onnx> <gristmill binary> [--provider cuda|cpu]
//! [--batches N,...] [--seconds N]`. `ORT_DYLIB_PATH` must name a library built with CUDA; the
//! program needs no other file of the repository. It prints rows with targets; `cargo xtask bench
//! gpu` runs it, or records what it printed. To try it without a GPU, use `--provider cpu`, few and
//! small batches, and any models with one input of which only the rows vary.

use std::num::NonZero;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use gristmill_backend::{LoadOptions, ProviderKind};
use gristmill_batch::{Lane, LaneConfig};
use gristmill_benches::compare::{Comparison, ROUNDS, median_ratio};
use gristmill_benches::end_to_end;
use gristmill_benches::harness::{Harness, closed_loop, on, shape_of, tensor_from};
use gristmill_benches::report::{self, Goal};
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

/// The sizes of batches, the rows of requests, and the most rows of a batch, if sizes change.
const SIZES: [usize; 6] = [1, 2, 4, 8, 16, 32];
const ROWS_OF_REQUESTS: [usize; 6] = [1, 2, 3, 5, 7, 11];
const CHANGING_BATCH_MAX: usize = 32;

/// The GPU memory of a session that lacks memory, and the rows of the run that needs more.
const LIMITED_BYTES: usize = 600 << 20;
const LARGE_ROWS: usize = 256;

/// The target: rows a second, as a ratio to the bare session.
const RATIO_MIN: f64 = 0.90;

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
    report::row("machine", &machine(), None);
    for (precision, path) in [("fp32", &fp32), ("fp16", &fp16)] {
        let (input, figures) = check(&harness, path, &options)?;
        let row = |what: &str, figures: &Value| {
            report::row(&format!("ResNet-50 {precision} {what}"), figures, None);
        };
        let comparison_row = |what: &str, figures: &Value| {
            let what = format!("ResNet-50 {precision} {what}: rows a second over the bare loop");
            let ratio = figures["ratio"].as_f64().unwrap_or(f64::NAN);
            report::row(&what, figures, Some(Goal::at_least(ratio, RATIO_MIN, "")));
        };
        row("outputs: largest difference", &figures);
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
            comparison_row(&format!("batch {batch}"), &comparison(*batch).run(&harness)?);
        }
        let figures = changing_sizes(&harness, path, &options, time)?;
        row("changing sizes: rows a second over those without fixed sizes", &figures);
        if provider == ProviderKind::Cuda {
            row("lack of memory", &lack_of_memory(&harness, path, &options)?);
        }
        let server = end_to_end::serve(&harness, &gristmill, path)?;
        for batch in batches.as_deref().unwrap_or(&END_TO_END_BATCHES) {
            for (way, figures) in end_to_end::compare(&harness, &server, &comparison(*batch))? {
                comparison_row(&format!("batch {batch} {way}"), &figures);
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
        let (apart, size) = largest_of(&computed, &expected)?;
        (difference, largest) = (difference.max(apart), largest.max(size));
    }
    let bound = largest * DIFFERENCE_MAX;
    ensure!(difference <= bound, "{path}: outputs differ by {difference}, more than {bound}");
    Ok((info, json!({ "max_abs_difference": difference, "largest_output": largest })))
}

/// The largest difference, and the largest of the expected values.
fn largest_of(computed: &[f32], expected: &[f32]) -> Result<(f32, f32)> {
    let (computed_len, expected_len) = (computed.len(), expected.len());
    ensure!(computed_len == expected_len, "{computed_len} values, not {expected_len}");
    let (mut difference, mut largest) = (0_f32, 0_f32);
    for (computed, expected) in computed.iter().zip(expected) {
        ensure!(computed.is_finite(), "computes {computed}, not {expected}");
        difference = difference.max((computed - expected).abs());
        largest = largest.max(expected.abs());
    }
    Ok((difference, largest))
}

/// Requests of several numbers of rows, so that most batches have another size than the one
/// before: rows a second if batches may have any size, and with a session for each of a few sizes.
fn changing_sizes(
    harness: &Harness,
    path: &str,
    options: &LoadOptions,
    time: Duration,
) -> Result<Value> {
    let lane = |sizes: &[usize]| {
        let options = LoadOptions { allowed_batch_sizes: sizes.to_vec(), ..options.clone() };
        let config = LaneConfig {
            allowed_batch_sizes: sizes.to_vec(),
            ..LaneConfig::new(CHANGING_BATCH_MAX, 4096)
        };
        harness.lane(harness.load_with(path, &options)?, config)
    };
    let (any, sized) = (lane(&[])?, lane(&SIZES)?);
    let input = &any.info().inputs[0];
    let requests = ROWS_OF_REQUESTS.iter().enumerate();
    let requests = requests.map(|(seed, rows)| pictures(harness, input, *rows, seed));
    let requests = requests.collect::<Result<Vec<_>>>()?;
    let flow = |lane: &Arc<Lane>, time: Duration| {
        let (before, began) = (lane.statistics().total.rows, Instant::now());
        let clients = 2 * requests.len();
        harness.runtime.block_on(closed_loop(lane, clients, &requests, time))?;
        let rows = lane.statistics().total.rows - before;
        Ok::<_, anyhow::Error>(rows as f64 / began.elapsed().as_secs_f64())
    };
    let (mut any_per_s, mut sized_per_s) = (Vec::new(), Vec::new());
    for lane in [&any, &sized] {
        flow(lane, WARM_UP)?;
    }
    for _ in 0..ROUNDS {
        any_per_s.push(flow(&any, time)?);
        sized_per_s.push(flow(&sized, time)?);
    }
    Ok(json!({
        "any_size_rows_per_s": any_per_s,
        "sized_rows_per_s": sized_per_s,
        "sizes": SIZES,
        "rows_of_requests": ROWS_OF_REQUESTS,
        "times": median_ratio(&sized_per_s, &any_per_s),
    }))
}

/// A run that needs more memory than `gpu_mem_limit`, between two small ones. Fails if the last one
/// fails.
fn lack_of_memory(harness: &Harness, path: &str, options: &LoadOptions) -> Result<Value> {
    let limit = ("gpu_mem_limit".to_owned(), LIMITED_BYTES.to_string());
    let options = LoadOptions { cuda_options: [limit].into(), ..options.clone() };
    let mut model = harness.load_with(path, &options)?;
    let input = model.info.inputs[0].clone();
    let mut run = |rows: usize| {
        let rows = pictures(harness, &input, rows, rows)?;
        anyhow::Ok(model.instances[0].run(&[rows]))
    };
    let before = values(&run(1)??[0])?;
    let Err(error) = run(LARGE_ROWS)? else {
        bail!("{LARGE_ROWS} rows ran within {LIMITED_BYTES} bytes")
    };
    let after = values(&run(1)??[0])?;
    let (difference, largest) = largest_of(&after, &before)?;
    let bound = largest * DIFFERENCE_MAX;
    ensure!(difference <= bound, "{path}: after a lack of memory outputs differ by {difference}");
    Ok(json!({ "limit_bytes": LIMITED_BYTES, "large_rows": LARGE_ROWS, "error": error.text }))
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
