//! The limit on the host memory that the runs of one session take, and how a run is ended.
//!
//! A session allocates from its own arena, which grows and is kept for the next run. ONNX Runtime
//! cannot limit an arena, so its growth is counted where it calls the C library's allocator
//! (`SessionMemory::runs`). If a run goes over the limit, unused parts of the arena may be the
//! reason. So the arena gives them back, the count starts again, and the run is repeated once.
//!
//! A part of the arena cannot be given back while an output lies in it. So outputs are copied out
//! of the arena if the sizes of the inputs do not bound their size, or if half of the limit is
//! taken.

use std::fmt::Display;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use gristmill_core::{Interrupt, ModelError, ModelErrorKind};
use gristmill_platform::Share;
use ort::ErrorCode;
use ort::environment::ThreadManager;
use ort::session::RunOptions;

use super::message::without_sources;
use crate::memory::SessionMemory;

/// A run option of ONNX Runtime: the named arenas give their free memory back when the run ends.
/// Source: `onnxruntime_run_options_config_keys.h`.
const SHRINKAGE: &str = "memory.enable_memory_arena_shrinkage";

/// How a session's runs are limited.
pub(super) struct Runs {
    keeping: RunOptions,
    /// Options with which a run shrinks the arena; none if the session has no arena.
    shrinking: Option<RunOptions>,
    is_steady: bool,
    memory: Arc<SessionMemory>,
    /// Shared with each output that lies in the arena.
    adopted: Pin,
}

/// An output that lies in the session's memory holds one. Their number says whether any is left.
#[derive(Clone, Default)]
pub(super) struct Pin(Arc<()>);

/// Properties of a session that decide how much memory it keeps.
pub(super) struct Keeping {
    /// The session's arenas, as ONNX Runtime names them; none if it has no arena.
    pub(super) arenas: Option<String>,
    /// Whether the sizes of the inputs bound the memory of a run.
    pub(super) is_steady: bool,
}

impl Runs {
    pub(super) fn new(memory: Arc<SessionMemory>, keeping: &Keeping) -> ort::Result<Self> {
        let shrinking = match &keeping.arenas {
            Some(arenas) => {
                let mut options = RunOptions::new()?;
                options.set(SHRINKAGE, arenas)?;
                Some(options)
            }
            None => None,
        };
        let (is_steady, adopted) = (keeping.is_steady, Pin::default());
        Ok(Self { keeping: RunOptions::new()?, shrinking, is_steady, memory, adopted })
    }

    /// Run `attempt` within the limit, up to three times. It gets the options of the run. If it
    /// gets a pin, it may leave outputs in the session's memory.
    pub(super) fn limited<T>(
        &self,
        mut attempt: impl FnMut(&RunOptions, Option<&Pin>) -> Result<T, ModelError>,
    ) -> Result<T, ModelError> {
        let Some(shrinking) = &self.shrinking else {
            // Without an arena each allocation is freed by itself, so the count starts at each run.
            self.memory.runs.reset();
            return self.counted(|| attempt(&self.keeping, Some(&self.adopted)));
        };
        let is_pressed = self.memory.runs.taken_bytes() > self.memory.runs.limit_bytes() / 2;
        let pin = Some(&self.adopted).filter(|_| self.is_steady && !is_pressed);
        let first = self.counted(|| attempt(&self.keeping, pin));
        // While outputs lie in the arena of the processor, it cannot shrink. That of a GPU can.
        let is_unread = Arc::strong_count(&self.adopted.0) > 1;
        if !lacks_memory(&first) || is_unread && is_over_limit(&first) {
            return first;
        }
        // This run most likely fails, too. But with these options it gives memory back at its end.
        let second = self.counted(|| attempt(shrinking, None));
        if !is_unread {
            self.memory.runs.reset();
        }
        if !lacks_memory(&second) {
            return second;
        }
        self.counted(|| attempt(&self.keeping, None))
    }

    /// Run once within the limit.
    fn counted<T>(&self, run: impl FnOnce() -> Result<T, ModelError>) -> Result<T, ModelError> {
        let refused = self.memory.runs.refused();
        self.memory.runs.count(run).map_err(|error| match self.memory.runs.refused() == refused {
            // If it lacks memory, it is that of the machine or of a GPU.
            true => error,
            false => self.over_limit(error),
        })
    }

    /// The error of a run to which memory was refused.
    fn over_limit(&self, error: ModelError) -> ModelError {
        if error.kind != ModelErrorKind::OutOfMemory {
            return error;
        }
        let limit = self.memory.runs.limit_bytes();
        let text = format!(
            "the run needs more memory than model_run_memory_bytes allows, {limit} bytes: {error}"
        );
        ModelError { kind: ModelErrorKind::OverLimit, text }
    }
}

fn is_over_limit<T>(outcome: &Result<T, ModelError>) -> bool {
    outcome.as_ref().is_err_and(|error| error.kind == ModelErrorKind::OverLimit)
}

/// Whether there was too little memory within the limit, on the machine or on a GPU.
fn lacks_memory<T>(outcome: &Result<T, ModelError>) -> bool {
    let is_out = |error: &ModelError| error.kind == ModelErrorKind::OutOfMemory;
    is_over_limit(outcome) || outcome.as_ref().is_err_and(is_out)
}

/// ONNX Runtime checks the flag before each operator, and in loops before each iteration.
/// Source: `OrtApi::RunOptionsSetTerminate`; the flag is read in `sequential_executor.cc`.
impl Interrupt for Runs {
    fn interrupt(&self) {
        for options in [Some(&self.keeping), self.shrinking.as_ref()].into_iter().flatten() {
            if let Err(error) = options.terminate() {
                tracing::error!(%error, "a run cannot be told to end");
            }
        }
    }

    fn rearm(&self) {
        for options in [Some(&self.keeping), self.shrinking.as_ref()].into_iter().flatten() {
            if let Err(error) = options.unterminate() {
                tracing::error!(%error, "an instance cannot run again");
            }
        }
    }
}

/// An error of ONNX Runtime. The runtime has no code for a lack of memory, so this one decision
/// has to look at the text.
pub(super) fn failed(error: impl Display) -> ModelError {
    let lacks = [
        "Failed to allocate memory",
        "bad_alloc",
        "bad allocation",
        "bad array new length",
        // Of a GPU, and of the part of it that `gpu_mem_limit` gives.
        "out of memory",
        "is smaller than requested bytes",
    ];
    let mut error = ModelError::new(without_sources(&error.to_string()));
    if lacks.iter().any(|text| error.text.contains(text)) {
        error.kind = ModelErrorKind::OutOfMemory;
    }
    error
}

/// The error of a run. ONNX Runtime says whether the inputs caused it.
pub(super) fn run_failed(error: ort::Error) -> ModelError {
    let is_input = error.code() == ErrorCode::InvalidArgument;
    let mut error = failed(error);
    if is_input && error.kind == ModelErrorKind::Failed {
        error.kind = ModelErrorKind::InvalidInput;
    }
    error
}

/// Starts the threads of a session. What they allocate counts as the session's memory.
pub(super) struct Threads(pub(super) Arc<SessionMemory>);

impl ThreadManager for Threads {
    type Thread = JoinHandle<()>;

    fn create(&self, work: impl FnOnce() + Send + 'static) -> ort::Result<Self::Thread> {
        let memory = self.0.clone();
        let run = move || {
            Share::Serving.take("runs of models");
            memory.runs.count(work)
        };
        let thread = thread::Builder::new().name("onnxruntime".into());
        thread.spawn(run).map_err(ort::Error::wrap)
    }

    fn join(thread: Self::Thread) -> ort::Result<()> {
        thread.join().map_err(|_| ort::Error::new("a thread of the session panicked"))
    }
}
