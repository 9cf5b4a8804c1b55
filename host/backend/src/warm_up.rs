//! The first runs of a model's instances, before the model serves: one for each batch size that the
//! configuration names.
//!
//! A first run of a size costs more than later ones: a backend plans, allocates and tunes then. All
//! is bounded in time. Runs that cannot be ended are left out if the runs before them show that
//! they would take long.

use std::time::{Duration, Instant};

use gristmill_core::{BufferPool, Model, ModelError, ModelErrorKind, ModelInfo, Tensor};

use crate::probe;
use crate::run_within::run_within;

/// The longest time of one run.
const RUN_TIME_MAX: Duration = Duration::from_secs(10);

/// The longest time of all runs of a model on a provider. The last one may go on beyond it.
const TIME_MAX: Duration = Duration::from_secs(60);

/// The sizes that are tried in place of open dimensions. Some models do not take the smallest: a
/// convolution needs as many pixels as its kernel has.
const OPEN_SIZES: [usize; 4] = [1, 64, 224, 7];

/// The runs of all instances of a model.
pub(crate) struct WarmUp<'a> {
    pub(crate) info: &'a ModelInfo,
    pub(crate) pool: &'a BufferPool,
    /// Batch sizes.
    pub(crate) sizes: &'a [usize],
}

/// How long a run of so many rows took.
#[derive(Clone, Copy)]
struct Timed {
    rows: usize,
    took: Duration,
}

impl WarmUp<'_> {
    /// Run each instance once with each size, the smallest first. Returns a warning for each size
    /// that failed or was left out: zeros may be what the model cannot take.
    ///
    /// # Errors
    /// A run needs more memory than it may have.
    pub(crate) fn run(&self, instances: &mut [Box<dyn Model>]) -> Result<Vec<String>, ModelError> {
        let (began, mut last, mut warnings) = (Instant::now(), None, Vec::new());
        let sizes = self.sizes(&mut warnings);
        let open = self.open_size(&sizes, instances);
        for rows in sizes {
            if began.elapsed() > TIME_MAX {
                let limit = TIME_MAX.as_secs();
                let text =
                    format!("{}: left out, because those before took {limit} s", first(rows));
                warnings.push(text);
                break;
            }
            match self.run_size((rows, open), instances, last) {
                Ok(took) => last = Some(Timed { rows, took }),
                // A request needs at least as much.
                Err(error) if error.kind == ModelErrorKind::OverLimit && open == 1 => {
                    return Err(ModelError {
                        text: format!("{}: {}", first(rows), error.text),
                        ..error
                    });
                }
                Err(error) => warnings.push(format!("{} {}", first(rows), error.text)),
            }
        }
        Ok(warnings)
    }

    /// The sizes in ascending order. A model whose rows form no batches runs once.
    fn sizes(&self, warnings: &mut Vec<String>) -> Vec<usize> {
        let mut sizes = self.sizes.to_vec();
        sizes.sort_unstable();
        sizes.dedup();
        if let Some(largest) = sizes.last().copied().filter(|_| !self.info.forms_batches) {
            if largest > 1 {
                warnings.push("warm_up: its rows form no batches, so it ran once".into());
            }
            return vec![1];
        }
        sizes
    }

    /// The size of the open dimensions after the first.
    fn open_size(&self, sizes: &[usize], instances: &mut [Box<dyn Model>]) -> usize {
        let Some(model) = instances.first_mut().filter(|_| !sizes.is_empty()) else { return 1 };
        if model.interrupt().is_none() {
            // It could take long.
            return 1;
        }
        let run = |inputs: &[Tensor]| run_within(model.as_mut(), inputs, RUN_TIME_MAX).map(drop);
        probe::open_size(self.info, self.pool, &OPEN_SIZES, run)
    }

    /// Run each instance once with so many rows, whose open dimensions have the size `open`.
    /// Returns the longest time.
    fn run_size(
        &self,
        (rows, open): (usize, usize),
        instances: &mut [Box<dyn Model>],
        mut last: Option<Timed>,
    ) -> Result<Duration, ModelError> {
        let inputs = probe::inputs(self.info, rows, open, self.pool)
            .map_err(|error| ModelError { text: format!("failed: {}", error.text), ..error })?;
        let mut longest = Duration::ZERO;
        for model in instances {
            if let Some(before) = last.filter(|_| model.interrupt().is_none()) {
                last = Some(self.check_time((rows, open), model.as_mut(), before)?);
            }
            let began = Instant::now();
            run_within(model.as_mut(), &inputs, RUN_TIME_MAX)?;
            longest = longest.max(began.elapsed());
        }
        Ok(longest)
    }

    /// Check that a run that cannot be ended will not take long, judged by the run `before`. If
    /// that one was slow, it is repeated: it was the first of its size.
    fn check_time(
        &self,
        (rows, open): (usize, usize),
        model: &mut dyn Model,
        before: Timed,
    ) -> Result<Timed, ModelError> {
        let is_slow = |Timed { rows: fewer, took }: Timed| {
            took.as_secs_f64() * rows as f64 / fewer as f64 > RUN_TIME_MAX.as_secs_f64()
        };
        if !is_slow(before) {
            return Ok(before);
        }
        let inputs = probe::inputs(self.info, before.rows, open, self.pool)?;
        let began = Instant::now();
        run_within(model, &inputs, RUN_TIME_MAX)?;
        let again = Timed { took: began.elapsed(), ..before };
        if is_slow(again) {
            let (took, limit) = (again.took.as_secs_f64(), RUN_TIME_MAX.as_secs());
            let text = format!(
                "was left out: it could take longer than {limit} s, because {} take {took:.1} s, and \
                 this provider's runs cannot be ended",
                in_rows(before.rows)
            );
            return Err(ModelError::new(text));
        }
        Ok(again)
    }
}

fn first(rows: usize) -> String {
    format!("a first run on {} of zeros", in_rows(rows))
}

fn in_rows(rows: usize) -> String {
    if rows == 1 { "1 row".into() } else { format!("{rows} rows") }
}

#[cfg(test)]
mod tests;
