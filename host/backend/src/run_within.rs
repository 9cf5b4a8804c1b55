//! One run with a limit on its time, on inputs that the model may not take, and the time of a run.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use gristmill_core::{Model, ModelError, ModelErrorKind, Tensor, Turn, run_guarded};
use tracing::dispatcher::{Dispatch, with_default};

/// The seconds of real time that a run has for each second of CPU time: on a busy machine its
/// thread also waits for a core.
pub(crate) const WALL_PER_CPU: u32 = 10;

/// Measures a run.
pub(crate) struct RunClock {
    began: Instant,
    turn: Turn,
}

impl RunClock {
    /// The run begins now, on this thread.
    pub(crate) fn begin() -> Self {
        Self { began: Instant::now(), turn: Turn::begin() }
    }

    /// The real time since it began.
    pub(crate) fn passed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The time that the run took: CPU time if it stayed on this thread. Ask on this thread.
    pub(crate) fn took(&self, model: &dyn Model) -> Duration {
        match model.ran_on_caller() {
            true => self.passed().min(Duration::from_nanos(self.turn.took())),
            false => self.passed(),
        }
    }
}

/// Run it once. If the model's runs can be ended, this one ends after `time`. What a backend logs
/// about the run is left out: the caller tells of its error.
pub(crate) fn run_within(
    model: &mut dyn Model,
    inputs: &[Tensor],
    time: Duration,
) -> Result<Vec<Tensor>, ModelError> {
    let interrupt = model.interrupt();
    let (outcome, ended) = std::thread::scope(|scope| {
        let (running, over) = channel::<()>();
        let ends = interrupt.as_ref();
        let timer = std::thread::Builder::new().spawn_scoped(scope, move || {
            let late = over.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            if let Some(interrupt) = ends.filter(|_| late) {
                interrupt.interrupt();
            }
            late
        });
        let outcome = with_default(&Dispatch::none(), || run_guarded(model, inputs));
        drop(running);
        let ended = timer.is_ok_and(|timer| timer.join().unwrap_or(false));
        (outcome, ended)
    });
    if ended {
        interrupt.inspect(|interrupt| interrupt.rearm());
        return Err(ModelError::new(format!("took longer than {:.0} s", time.as_secs_f64())));
    }
    match outcome {
        Err(error) if error.kind != ModelErrorKind::OverLimit => {
            Err(ModelError { text: format!("failed: {}", error.text), ..error })
        }
        other => other,
    }
}
