//! The limit on the host's memory that the runs of one session take, and how a run is ended.
//!
//! A session allocates from an arena of its own, which grows and is kept for the next run. ONNX
//! Runtime has no limit for it, so its growth is counted where it reaches the C library
//! ([`NativeMemory`]). Where a run finds no room although parts of the arena are unused, the arena
//! gives these back, the count begins anew, and the run is repeated once. A part of the arena stays
//! as long as an output lies in it; so outputs are taken out of the arena (copied) where their size
//! is not bounded by the sizes of the inputs, or where half of the limit is taken.

use std::fmt::Display;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use gristmill_core::{Interrupt, ModelError, ModelErrorKind};
use gristmill_thread::NativeMemory;
use ort::environment::ThreadManager;
use ort::session::RunOptions;

/// The run option of ONNX Runtime that names the arena which gives its free memory back when the
/// run ends.
const SHRINKAGE: (&str, &str) = ("memory.enable_memory_arena_shrinkage", "cpu:0");

/// How a session's runs are limited.
pub(super) struct Runs {
    keeping: RunOptions,
    /// Options whose runs shrink the arena; none where the session has no arena.
    shrinking: Option<RunOptions>,
    is_steady: bool,
    memory: Arc<NativeMemory>,
    /// Shared with each output that lies in the arena.
    adopted: Pin,
}

/// Keeps an output in the session's memory. The session counts them.
#[derive(Clone, Default)]
pub(super) struct Pin(Arc<()>);

/// Properties on which it depends what a session keeps.
pub(super) struct Keeping {
    /// Whether the session has an arena.
    pub(super) arena: bool,
    /// Whether the sizes of its inputs say how much a run takes.
    pub(super) is_steady: bool,
}

impl Runs {
    pub(super) fn new(memory: Arc<NativeMemory>, keeping: &Keeping) -> ort::Result<Self> {
        let Keeping { arena, is_steady } = *keeping;
        let shrinking = match arena {
            true => {
                let mut options = RunOptions::new()?;
                options.set(SHRINKAGE.0, SHRINKAGE.1)?;
                Some(options)
            }
            false => None,
        };
        let (keeping, adopted) = (RunOptions::new()?, Pin::default());
        Ok(Self { keeping, shrinking, is_steady, memory, adopted })
    }

    /// One run, through `attempt`, which gets the run's options and may keep outputs where they lie
    /// if it is given a pin.
    pub(super) fn limited<T>(
        &self,
        mut attempt: impl FnMut(&RunOptions, Option<&Pin>) -> Result<T, ModelError>,
    ) -> Result<T, ModelError> {
        let Some(shrinking) = &self.shrinking else {
            // Each allocation is given back by itself, so that only one run's count.
            self.memory.reset();
            return self.counted(|| attempt(&self.keeping, Some(&self.adopted)));
        };
        let is_pressed = self.memory.taken_bytes() > self.memory.limit_bytes() / 2;
        let pin = Some(&self.adopted).filter(|_| self.is_steady && !is_pressed);
        let first = self.counted(|| attempt(&self.keeping, pin));
        let may_shrink = Arc::strong_count(&self.adopted.0) == 1;
        if !is_over_limit(&first) || !may_shrink {
            return first;
        }
        // It most likely fails again. But a run with these options gives memory back when it ends.
        let second = self.counted(|| attempt(shrinking, None));
        self.memory.reset();
        if !is_over_limit(&second) {
            return second;
        }
        self.counted(|| attempt(&self.keeping, None))
    }

    /// A run whose options are its own: nothing is given back.
    pub(super) fn counted<T>(
        &self,
        run: impl FnOnce() -> Result<T, ModelError>,
    ) -> Result<T, ModelError> {
        self.memory.count(run).map_err(|error| self.failed(error))
    }

    pub(super) fn pin(&self) -> &Pin {
        &self.adopted
    }

    fn failed(&self, error: ModelError) -> ModelError {
        let limit = self.memory.limit_bytes();
        if limit == usize::MAX || error.kind != ModelErrorKind::OutOfMemory {
            return error;
        }
        let text = format!(
            "the run needs more memory than model_run_memory_bytes allows, {limit} bytes: {error}"
        );
        ModelError { kind: ModelErrorKind::OverLimit, text }
    }
}

fn is_over_limit<T>(outcome: &Result<T, ModelError>) -> bool {
    outcome.as_ref().is_err_and(|error| error.kind == ModelErrorKind::OverLimit)
}

/// ONNX Runtime checks the flag before each operator, in loops in each turn.
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

/// An error of ONNX Runtime. It has no code for a lack of memory: only the texts tell.
pub(super) fn failed(error: impl Display) -> ModelError {
    let lacks =
        ["Failed to allocate memory", "bad_alloc", "bad allocation", "bad array new length"];
    let mut error = ModelError::new(error.to_string());
    if lacks.iter().any(|text| error.text.contains(text)) {
        error.kind = ModelErrorKind::OutOfMemory;
    }
    error
}

/// Makes the threads of a session. Their allocations count as the session's.
pub(super) struct Threads(pub(super) Arc<NativeMemory>);

impl ThreadManager for Threads {
    type Thread = JoinHandle<()>;

    fn create(&self, work: impl FnOnce() + Send + 'static) -> ort::Result<Self::Thread> {
        let memory = self.0.clone();
        let thread = thread::Builder::new().name("onnxruntime".into());
        thread.spawn(move || memory.count(work)).map_err(ort::Error::wrap)
    }

    fn join(thread: Self::Thread) -> ort::Result<()> {
        thread.join().map_err(|_| ort::Error::new("a thread of the session panicked"))
    }
}
