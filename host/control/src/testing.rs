//! Helpers for the unit tests of several files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gristmill_backend::{Backends, LibrarySearch};
use gristmill_batch::{Lane, LaneConfig, LaneParts};
use gristmill_core::{
    BufferPool, Digest, Dtype, Model, ModelError, ModelInfo, Name, PipelineLimits, Tensor,
    TensorInfo,
};
use gristmill_platform::child::{ChildRunner, RunnerConfig};
use gristmill_sandbox::{NoOutgoing, NoStores, Sandbox, SandboxConfig};
use gristmill_state::SampleAnswer;
use gristmill_store::Store;

use crate::{
    AssetLimits, ControlParts, FigureParts, Progress, ProverConfig, SampleRun, SampleRunner,
};

/// Answers with its inputs.
struct Echo;

impl Model for Echo {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        Ok(inputs.to_vec())
    }
}

/// A lane over a model that answers with its input.
pub(crate) fn echo_lane(config: LaneConfig) -> Lane {
    let tensor = |name: &str| TensorInfo {
        name: name.into(),
        dtype: Dtype::Float32,
        dims: vec![None, Some(1)],
    };
    let info = ModelInfo {
        backend: "test",
        inputs: vec![tensor("x")],
        outputs: vec![tensor("y")],
        forms_batches: true,
        optional: Vec::new(),
        equal_dims: Vec::new(),
    };
    Lane::new(LaneParts {
        name: "echo",
        info,
        instances: vec![Box::new(Echo)],
        config,
        pool: BufferPool::new(0),
    })
    .unwrap()
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn digest(byte: u8) -> Digest {
    Digest::from_bytes([byte; 32])
}

/// What control planes of one machine share: they differ only in their stores.
pub(crate) struct Machine {
    directory: PathBuf,
    sandbox: Arc<Sandbox>,
    backends: Arc<Backends>,
    figures: FigureParts,
}

impl Machine {
    pub(crate) fn of(directory: &Path) -> Self {
        let (directory, pool) = (directory.to_owned(), BufferPool::new(0));
        let sandbox = SandboxConfig::new(directory.join("compiled"));
        let sandbox = Sandbox::new(&sandbox, pool.clone()).unwrap();
        let backends = Backends::open(&LibrarySearch::default(), pool, usize::MAX).unwrap();
        Self { directory, sandbox, backends, figures: figure_parts() }
    }

    /// The parts of a control plane over this store. It proves no model and runs no sample.
    pub(crate) fn parts(&self, store: Arc<Store>) -> ControlParts {
        let second = Duration::from_secs(1);
        ControlParts {
            store,
            sandbox: self.sandbox.clone(),
            backends: self.backends.clone(),
            limits: PipelineLimits::default(),
            tenant_bytes_max: 4 << 20,
            tenant_compiled_bytes_max: 1 << 30,
            asset_limits: AssetLimits { bytes_max: 1 << 20, tenant_bytes_max: 4 << 20 },
            keep_releases: 1000,
            waiting_bytes_max: 1 << 30,
            hash_key: None,
            prover: ProverConfig {
                runner: ChildRunner::new(RunnerConfig::new(&["child"])),
                directory: self.directory.join("proofs"),
                timeout: second,
                memory_bytes: 1 << 20,
            },
            sample_runner: Arc::new(NoSamples),
            samples_timeout: second,
            progress: Progress::default(),
            figures: self.figures.clone(),
            stores: Arc::new(NoStores),
            outgoing: Arc::new(NoOutgoing),
            following: None,
        }
    }
}

/// No pipeline has samples.
struct NoSamples;

#[async_trait::async_trait]
impl SampleRunner for NoSamples {
    async fn run(&self, run: SampleRun<'_>) -> SampleAnswer {
        panic!("no pipeline has samples, but {:?} runs", run.name)
    }
}

/// One slot for figures, and usage that is not kept.
pub(crate) fn figure_parts() -> FigureParts {
    let folder = tempfile::tempdir().unwrap();
    let usage =
        gristmill_metrics::usage::UsageStore::open(folder.path(), 1, std::time::SystemTime::now());
    FigureParts {
        label_slots: gristmill_metrics::LabelSlots::new(1).into(),
        usage: usage.unwrap().into(),
    }
}
