//! What the runs of one session may take of the host's memory, and how one is ended.
//!
//! A session allocates from an arena of its own, which grows and is kept for the next run. ONNX
//! Runtime has no limit for it, so its growth is counted where it reaches the C library
//! ([`NativeMemory`]). A run that gives the arena's free memory back when it ends is the end of a
//! count: that is each run of a model whose inputs' values can ask for any size, and any other
//! run from the time on that half of the limit is taken.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use gristmill_core::{Interrupt, ModelError};
use gristmill_thread::NativeMemory;
use ort::environment::ThreadManager;
use ort::session::RunOptions;

/// Of ONNX Runtime's run options: whose arena gives its free memory back when the run ends.
const SHRINKAGE: (&str, &str) = ("memory.enable_memory_arena_shrinkage", "cpu:0");

/// How a session's runs are limited.
pub(super) struct Runs {
    keeping: RunOptions,
    /// None: the session has no arena, and keeps nothing.
    shrinking: Option<RunOptions>,
    always_shrink: bool,
    memory: Arc<NativeMemory>,
}

/// What decides whether a run gives memory back.
pub(super) struct Keeping {
    /// Whether the session has an arena.
    pub(super) arena: bool,
    /// Whether the sizes of its inputs say how much a run takes.
    pub(super) is_steady: bool,
}

impl Runs {
    pub(super) fn new(memory: Arc<NativeMemory>, keeping: &Keeping) -> ort::Result<Self> {
        let shrinking = match keeping.arena {
            true => {
                let mut options = RunOptions::new()?;
                options.set(SHRINKAGE.0, SHRINKAGE.1)?;
                Some(options)
            }
            false => None,
        };
        let always_shrink = !keeping.is_steady;
        Ok(Self { keeping: RunOptions::new()?, shrinking, always_shrink, memory })
    }

    /// One run, through `run`.
    pub(super) fn limited<'a, T>(
        &'a self,
        run: impl FnOnce(&'a RunOptions) -> ort::Result<T>,
    ) -> Result<T, ModelError> {
        let shrinks =
            self.always_shrink || self.memory.taken_bytes() > self.memory.limit_bytes() / 2;
        let (options, gives_back) = match &self.shrinking {
            Some(options) if shrinks => (options, true),
            Some(_) => (&self.keeping, false),
            None => (&self.keeping, true),
        };
        let outcome = self.memory.count(|| run(options)).map_err(|error| self.failed(&error));
        if gives_back {
            self.memory.reset();
        }
        outcome
    }

    fn failed(&self, error: &ort::Error) -> ModelError {
        let error = ModelError(error.to_string());
        let limit = self.memory.limit_bytes();
        if limit == usize::MAX || !is_out_of_memory(&error) {
            return error;
        }
        ModelError(format!(
            "the run needs more memory than model_run_memory_bytes allows, {limit} bytes: {error}"
        ))
    }
}

/// ONNX Runtime looks at the flag before each operator, in loops before each of each turn.
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

/// Whether a run failed because there was no memory. ONNX Runtime has no code for it.
pub(crate) fn is_out_of_memory(error: &ModelError) -> bool {
    let texts =
        ["Failed to allocate memory", "bad_alloc", "bad allocation", "bad array new length"];
    texts.iter().any(|text| error.0.contains(text))
}

/// Makes the threads of a session: what they allocate counts as the session's.
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
