//! The parts that all benchmarks of lanes need: backends, a pool, a runtime, and functions to
//! submit requests.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use gristmill_backend::{
    Backends, Batching, LibrarySearch, LoadOptions, LoadedModel, ProviderKind, RowProof,
};
use gristmill_batch::{Lane, LaneConfig, LaneParts, Submission, SubmitError};
use gristmill_core::{BufferPool, Deadline, Dtype, Model, Name, NamedTensor, Tensor, TensorInfo};
use gristmill_load::percentile;
use tokio::runtime::Runtime;

use crate::files::read;

/// The deadline of a request, longer than any scenario.
const PATIENCE: Duration = Duration::from_secs(600);

pub struct Harness {
    pub pool: BufferPool,
    pub runtime: Runtime,
    backends: Arc<Backends>,
}

impl Harness {
    pub fn new() -> Result<Self> {
        let pool = BufferPool::new(1 << 30);
        let backends = Backends::open(&LibrarySearch::default(), pool.clone(), usize::MAX)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        Ok(Self { pool, runtime, backends })
    }

    /// A model on ONNX Runtime, on the processor, with one instance of one thread. Its path is
    /// relative to the repository, where this is run.
    pub fn load(&self, path: &str) -> Result<LoadedModel> {
        self.load_with(path, &on(ProviderKind::Cpu))
    }

    pub fn load_with(&self, path: &str, options: &LoadOptions) -> Result<LoadedModel> {
        let onnx = read(Path::new(path))?;
        Ok(self.backends.load(&onnx, options, &RowProof::default())?)
    }

    pub fn lane(&self, model: LoadedModel, config: LaneConfig) -> Result<Arc<Lane>> {
        let LoadedModel { info, instances, staging, .. } = model;
        Ok(Arc::new(Lane::new(LaneParts {
            name: "bench",
            info,
            instances,
            config,
            pool: staging,
        })?))
    }

    /// A lane over a model of [`crate::models`].
    pub fn lane_over(&self, model: impl Model + 'static, config: LaneConfig) -> Result<Arc<Lane>> {
        let info = crate::models::info();
        Ok(Arc::new(Lane::new(LaneParts {
            name: "bench",
            info,
            instances: vec![Box::new(model)],
            config,
            pool: self.pool.clone(),
        })?))
    }

    /// An FP32 tensor of `shape` whose elements are all `value`.
    pub fn tensor(&self, shape: &[usize], value: f32) -> Tensor {
        tensor_in(&self.pool, Dtype::Float32, shape, value)
    }
}

/// Options to load a model on `provider` alone. Its rows are known to be independent.
pub fn on(provider: ProviderKind) -> LoadOptions {
    let batching = Batching::Declared;
    LoadOptions { providers: vec![provider], batching, ..LoadOptions::default() }
}

/// A tensor of `shape` whose elements are all `value`, FP16 or FP32, in memory of `pool`.
pub fn tensor_in(pool: &BufferPool, dtype: Dtype, shape: &[usize], value: f32) -> Tensor {
    tensor_from(pool, dtype, shape, |_| value)
}

/// A tensor of `shape`, FP16 or FP32. `value` gives the element at an index.
pub fn tensor_from(
    pool: &BufferPool,
    dtype: Dtype,
    shape: &[usize],
    value: impl FnMut(usize) -> f32,
) -> Tensor {
    let values = (0..shape.iter().product()).map(value);
    let buffer = match dtype {
        Dtype::Float16 => {
            let values: Vec<_> = values.map(half::f16::from_f32).collect();
            pool.copy_from(bytemuck::cast_slice(&values))
        }
        _ => pool.copy_from(bytemuck::cast_slice(&values.collect::<Vec<_>>())),
    };
    match Tensor::new(dtype, shape.into(), buffer) {
        Ok(tensor) => tensor,
        Err(error) => unreachable!("{error}"),
    }
}

/// The shape of `rows` rows of an input.
///
/// # Errors
/// Another dimension than the first one varies.
pub fn shape_of(input: &TensorInfo, rows: usize) -> Result<Vec<usize>> {
    let row: Option<Vec<usize>> = input.dims.iter().skip(1).copied().collect();
    let mut shape =
        row.with_context(|| format!("input {} varies in more than rows", input.name))?;
    shape.insert(0, rows);
    Ok(shape)
}

/// A request of `tenant` with one input.
pub fn submission(tenant: &Name, input: &Arc<str>, tensor: &Tensor) -> Submission {
    Submission {
        tenant: tenant.clone(),
        weight: 1,
        priority: None,
        timeout: None,
        inputs: vec![NamedTensor { name: input.clone(), tensor: tensor.clone() }],
        arrived: Instant::now(),
        deadline: Deadline::at(Instant::now() + PATIENCE),
        keeps_apart: false,
        more_follow: false,
    }
}

pub fn tenant(name: &str) -> Name {
    match name.parse() {
        Ok(name) => name,
        Err(error) => unreachable!("{error}"),
    }
}

/// Run clients for `time`. Each sends one of `tensors` again when it has the answer. Returns
/// answers a second.
pub async fn closed_loop(
    lane: &Arc<Lane>,
    clients: usize,
    tensors: &[Tensor],
    time: Duration,
) -> Result<f64> {
    let began = Instant::now();
    let input = lane.info().inputs[0].name.clone();
    let tasks = tensors.iter().cycle().take(clients).map(|tensor| {
        let (lane, tensor, input, tenant) =
            (lane.clone(), tensor.clone(), input.clone(), tenant("a"));
        tokio::spawn(async move {
            let mut answers = 0_u64;
            while began.elapsed() < time {
                lane.submit(submission(&tenant, &input, &tensor), None).await?;
                answers += 1;
            }
            Ok::<_, SubmitError>(answers)
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut answers = 0;
    for task in tasks {
        answers += task.await??;
    }
    Ok(answers as f64 / began.elapsed().as_secs_f64())
}

/// The milliseconds within which `percent` of the times lie. None of no times.
pub fn percentile_ms(times: &[Duration], percent: f64) -> Option<f64> {
    let times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    percentile(&times, percent)
}
