//! Proving a model: loading it for the first time, in a child process.
//!
//! A model of a few bytes can need any amount of memory and time when it is loaded or run. So a
//! child loads it and runs it once, within limits, before the server loads it. It also finds out
//! whether rows of requests may share a batch, and which sizes are fast here. The outcome is
//! remembered in a file, so that a restart does not prove again. Refuses to know what a release is.
//!
//! Invariant: the server loads a model only on the providers on which the child loaded it, and on
//! GPUs. A child cannot prove a model on a GPU, because CUDA reserves far more address space than
//! the child's limits allow.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use gristmill_backend::{
    Backends, FixedSizes, LibrarySearch, LoadOptions, ModelFile, RowProof, SIZING_TIME, Sizing,
};
use gristmill_core::{BufferPool, Digest};
use gristmill_platform::child::{
    ChildError, ChildLimits, ChildRunner, Job, JobStatus, Output, Task,
};
use gristmill_state::{CutSpec, GraphOptimizationSpec, ModelConfig, PadSpec, ProviderName};
use serde::{Deserialize, Serialize};

use crate::load::blob::StoredModel;
use crate::load::error::{LoadError, brief};
use crate::load::paths::without_folder;

/// The name of the job that [`prove_model`] does.
pub const PROVE_JOB: &str = "prove-model";

/// A model is in memory several times while it is loaded: as a file, parsed, and packed for the
/// kernels.
const COPIES: u64 = 4;

/// The seconds of real time that a child has for each second of CPU time: on a busy machine
/// it gets a tenth of a core.
const WALL_PER_CPU: u32 = 10;

/// The longest answer, which has names and reasons.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The configuration of proofs.
pub struct ProverConfig {
    /// Runs the child processes.
    pub runner: Arc<ChildRunner>,
    /// The folder of remembered proofs.
    pub directory: PathBuf,
    /// The CPU time that loading a model and running it once may take, without the trial of
    /// its rows.
    pub timeout: Duration,
    /// The memory that it may take in addition to four times the file.
    pub memory_bytes: u64,
}

pub(crate) struct Prover {
    config: ProverConfig,
    backends: Arc<Backends>,
}

/// The subject of a proof: the proof holds for exactly these values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Subject {
    model: Digest,
    /// The versions of the libraries.
    version: String,
    library: Option<Library>,
    providers: Vec<ProviderName>,
    graph_optimization: GraphOptimizationSpec,
    memory_arena: bool,
    memory_pattern: bool,
    /// How the independence of its rows was judged. Proofs of earlier versions lack it.
    #[serde(default)]
    rows: Option<RowSubject>,
    /// How rows may be padded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    padding: Option<PaddingSubject>,
    /// The sizes that were to be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sizes: Option<FixedSizes>,
}

/// How the independence of rows is judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RowSubject {
    /// The version of the trial and of the rules for graphs.
    version: u32,
    trial_ms: u64,
}

/// A claim about padding, and how it is judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PaddingSubject {
    pad: BTreeMap<String, PadSpec>,
    cut: BTreeMap<String, CutSpec>,
    judged: RowSubject,
}

/// Raised when the trial or the rules for graphs change, so that all proofs are made again.
const ROW_PROOF_VERSION: u32 = 5;

/// The same for the trial of padding.
const PADDING_PROOF_VERSION: u32 = 5;

/// The identity of a library's file at the time of the proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Library {
    path: PathBuf,
    len: u64,
    modified_s: u64,
}

/// The question to the child, besides a model of one file.
#[derive(Debug, Serialize, Deserialize)]
struct Question {
    library: Option<PathBuf>,
    /// The path of a model that is a package. Any other is the job's file.
    package: Option<PathBuf>,
    config: ModelConfig,
    /// The sizes, if some are to be chosen.
    sizes: Option<FixedSizes>,
}

/// The providers that loaded the model, or the reason why none did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProofReport {
    pub(crate) providers: Vec<ProviderName>,
    /// Why other providers did not.
    pub(crate) failed: Vec<String>,
    /// What is known of its rows.
    #[serde(default)]
    pub(crate) rows: RowProof,
    /// The sizes that were to be chosen.
    #[serde(default)]
    pub(crate) sizing: Option<Sizing>,
    refused: Option<String>,
    /// Why the child could not try at all. This is the host's fault and goes to the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
}

/// A remembered proof.
#[derive(Debug, Serialize, Deserialize)]
struct Proof {
    subject: Subject,
    answer: ProofReport,
}

impl Prover {
    pub(crate) fn new(config: ProverConfig, backends: Arc<Backends>) -> Self {
        Self { config, backends }
    }

    /// The proof that the server can load this model, remembered or made now.
    pub(crate) async fn prove(
        &self,
        digest: Digest,
        model: &StoredModel,
        config: &ModelConfig,
    ) -> Result<ProofReport, LoadError> {
        let subject = self.subject(digest, config);
        let file = self.file(&subject);
        if let Some(answer) = remembered(&file, &subject) {
            return Ok(answer);
        }
        let (answer, may_be_remembered) = self.ask_for_less(digest, model, config).await?;
        if let Some(why) = answer.host {
            tracing::error!(model = %digest, why, "a model cannot be proven");
            return Err(LoadError::ProverSetUp);
        }
        if let Some(why) = answer.refused {
            return Err(LoadError::Unproven(model.without_paths(&self.without_paths(&why))));
        }
        if !may_be_remembered || answer.rows.is_unfinished() {
            return Ok(answer);
        }
        let proof = Proof { subject, answer };
        if let Err(error) = remember(&file, &proof) {
            tracing::warn!(file = %file.display(), %error, "the proof of a model cannot be written");
        }
        Ok(proof.answer)
    }

    /// Ask a child for all that is to be known. If it ends, ask without the measurement of sizes,
    /// then also without the trial of padding, then without that of rows: they may have needed too
    /// much. Returns whether the answer may be remembered: on a machine with less to do, the child
    /// might not have ended.
    async fn ask_for_less(
        &self,
        digest: Digest,
        model: &StoredModel,
        config: &ModelConfig,
    ) -> Result<(ProofReport, bool), LoadError> {
        let (pad, cut) = (BTreeMap::new(), BTreeMap::new());
        let unpadded = ModelConfig { pad, cut, ..config.clone() };
        let untried = ModelConfig { batch_proof_ms: 0, ..unpadded.clone() };
        let is_tried = config.load_options().batching.is_proven();
        let sizes = config.sizes().fixed(cores());
        let mut attempts = Vec::new();
        if sizes.is_some() {
            attempts.push((config, sizes, "its sizes are not measured"));
        }
        if !config.pad.is_empty() {
            attempts.push((config, None, "its padding is not tried"));
        }
        if is_tried {
            attempts.push((&unpadded, None, "its rows are not tried"));
        }
        let last = if is_tried { &untried } else { &unpadded };
        let mut may_be_remembered = true;
        for (asked, sizes, therefore) in attempts {
            match self.ask(digest, model, asked, sizes).await {
                Err(LoadError::Prover { text, source }) if source.has_begun() => {
                    let is_late = matches!(source, ChildError::TimedOut(_));
                    may_be_remembered &= !is_late && !source.is_hosts_fault();
                    tracing::warn!(model = %digest, why = text, "a child ended: {therefore}");
                }
                answer => return Ok((answer?, may_be_remembered)),
            }
        }
        Ok((self.ask(digest, model, last, None).await?, may_be_remembered))
    }

    pub(crate) fn jobs(&self) -> Vec<JobStatus> {
        self.config.runner.status()
    }

    async fn ask(
        &self,
        digest: Digest,
        model: &StoredModel,
        config: &ModelConfig,
        sizes: Option<FixedSizes>,
    ) -> Result<ProofReport, LoadError> {
        let library = self.backends.library().map(Path::to_owned);
        let package = model.package().map(Path::to_owned);
        let mut limits = self.limits(model.bytes(), config);
        if let Some(sizes) = &sizes {
            limits.cpu += SIZING_TIME * sizes.cores as u32;
            limits.wall += SIZING_TIME * WALL_PER_CPU;
        }
        let question = Question { library, package, config: config.clone(), sizes };
        let job = Job {
            job: PROVE_JOB,
            subject: format!("model {digest}"),
            document: serde_json::to_vec(&question)?,
            limits,
            file: match model {
                StoredModel::Onnx(onnx) => onnx.clone(),
                // The child maps it.
                StoredModel::Package(_) => Bytes::new(),
            },
            output: Output::Returned,
        };
        let answer = self.config.runner.run(job).await.map_err(|source| {
            let text = self.without_paths(&source.to_string());
            LoadError::Prover { text, source }
        })?;
        Ok(serde_json::from_slice(&answer)?)
    }

    /// A library's text without the library's folder.
    fn without_paths(&self, text: &str) -> String {
        without_folder(text, self.backends.library())
    }

    fn limits(&self, file_bytes: u64, config: &ModelConfig) -> ChildLimits {
        let ProverConfig { mut timeout, memory_bytes, .. } = self.config;
        let options = config.load_options();
        // Each provider is tried.
        timeout += options.trial_time * trials(&options) * options.providers.len().max(1) as u32;
        ChildLimits {
            wall: timeout * WALL_PER_CPU,
            cpu: timeout,
            memory_bytes: memory_bytes.saturating_add(COPIES.saturating_mul(file_bytes)),
            address_bytes: None,
            output_bytes: ANSWER_BYTES_MAX,
        }
    }

    fn subject(&self, model: Digest, config: &ModelConfig) -> Subject {
        let trial_ms = config.batch_proof_ms;
        let judged = |version| RowSubject { version, trial_ms };
        let is_tried = config.load_options().batching.is_proven();
        Subject {
            model,
            version: self.backends.version(),
            library: self.backends.library().map(Library::at),
            providers: config.providers.clone(),
            graph_optimization: config.graph_optimization,
            memory_arena: config.memory_arena,
            memory_pattern: config.memory_pattern,
            rows: is_tried.then(|| judged(ROW_PROOF_VERSION)),
            padding: (!config.pad.is_empty()).then(|| PaddingSubject {
                pad: config.pad.clone(),
                cut: config.cut.clone(),
                judged: judged(PADDING_PROOF_VERSION),
            }),
            sizes: config.sizes().fixed(cores()),
        }
    }

    fn file(&self, subject: &Subject) -> PathBuf {
        let text = serde_json::to_vec(subject).unwrap_or_default();
        self.config.directory.join(format!("{}.json", Digest::of(&text).hex()))
    }

    /// Forget the proofs of models that `keeps` does not name.
    pub(crate) fn forget(&self, keeps: impl Fn(&Digest) -> bool) {
        let Ok(entries) = std::fs::read_dir(&self.config.directory) else { return };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let proof = std::fs::read(&path).ok();
            let proof = proof.and_then(|text| serde_json::from_slice::<Proof>(&text).ok());
            if proof.is_none_or(|proof| !keeps(&proof.subject.model)) {
                let _ = std::fs::remove_file(&path);
            }
        }
    }
}

/// How many trials a provider makes: of the independence of rows, and of padding.
fn trials(options: &LoadOptions) -> u32 {
    u32::from(options.batching.is_proven()) + u32::from(!options.padding.is_none())
}

/// The cores that this process may use.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

impl Library {
    fn at(path: &Path) -> Self {
        let metadata = path.metadata().ok();
        let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self {
            path: path.to_owned(),
            len: metadata.map_or(0, |metadata| metadata.len()),
            modified_s: modified.map_or(0, |since| since.as_secs()),
        }
    }
}

/// The remembered answer. None if the file is damaged or has another subject.
fn remembered(file: &Path, subject: &Subject) -> Option<ProofReport> {
    let proof: Proof = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    (proof.subject == *subject).then_some(proof.answer)
}

fn remember(file: &Path, proof: &Proof) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut temporary = tempfile::NamedTempFile::new_in(directory)?;
    temporary.write_all(&serde_json::to_vec(proof)?)?;
    temporary.persist(file)?;
    Ok(())
}

/// The child's work: load the model, run it once, and write the outcome.
///
/// # Errors
/// The task cannot be read, or the outcome cannot be written.
pub fn prove_model(task: &Task, out: &mut impl Write) -> io::Result<()> {
    // If memory runs short, the kernel kills this process first.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let question: Question = serde_json::from_slice(&task.document)?;
    let search = LibrarySearch { configured: question.library, data_directory: None };
    // The process itself has limits.
    let file = match &question.package {
        Some(package) => ModelFile::Package(package),
        None => (&task.file).into(),
    };
    let answer = match Backends::open(&search, BufferPool::new(0), usize::MAX) {
        Ok(backends) => {
            match backends.prove(file, &question.config.load_options(), question.sizes.as_ref()) {
                Ok(proven) => ProofReport {
                    providers: proven.providers.into_iter().map(ProviderName::of).collect(),
                    failed: proven.failed,
                    rows: proven.rows,
                    sizing: proven.sizing,
                    ..ProofReport::default()
                },
                Err(error) => {
                    ProofReport { refused: Some(brief(&error)), ..ProofReport::default() }
                }
            }
        }
        Err(error) => ProofReport { host: Some(error.to_string()), ..ProofReport::default() },
    };
    serde_json::to_writer(&mut *out, &answer)?;
    out.flush()
}

#[cfg(test)]
mod tests;
