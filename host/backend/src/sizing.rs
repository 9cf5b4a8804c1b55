//! The sizes with which a model is fast on this machine: the rows of a batch, the instances and the
//! threads of a run.
//!
//! They are measured when a model is loaded for the first time. First one instance of one thread
//! runs batches of growing sizes. Then, if runs are long enough to be worth another thread, a few
//! arrangements of instances and threads run side by side, and the one with the most rows a second
//! wins. The inputs are made up. Dimensions that the file leaves open have the size of a usual
//! picture or of a short text, if the model takes it.
//!
//! A busy machine must not choose other sizes of batches than an idle one. So the time of a run is
//! CPU time if the run stays on its thread, as it does on the processor.
//!
//! Invariants: an arrangement uses no more threads than there are cores, and its instances no more
//! memory than [`INSTANCES_BYTES_MAX`]. The time is bounded, but for the runs that have begun.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use gristmill_core::{Model, ModelError, ModelInfo, Tensor, run_guarded};
use serde::{Deserialize, Serialize};

use crate::backends::Backends;
use crate::inspect::Inspected;
use crate::options::{LoadOptions, ProviderKind};
use crate::probe;
use crate::run_within::{RunClock, WALL_PER_CPU, run_within};
use crate::source::ModelSource;

/// The largest batch that is measured, and that is allowed if no size is better than all others.
pub const BATCH_SIZE_MAX: usize = 256;

/// The time of runs with batches of growing sizes, and with each size.
const SIZES_TIME: Duration = Duration::from_millis(600);
const SIZE_TIME: Duration = Duration::from_millis(4);

/// The sizes that are tried in place of open dimensions: those of short texts and small pictures,
/// of usual pictures, of a few elements, and of one.
const OPEN_SIZES: [usize; 4] = [64, 224, 7, 1];

/// Those for a model of pictures: batches of small pictures gain where batches of usual ones lose,
/// because they no longer fit the processor's caches.
const OPEN_SIZES_OF_PICTURES: [usize; 4] = [224, 64, 7, 1];

/// Longer runs are measured once.
const LONG_RUN: Duration = Duration::from_millis(100);

/// With longer runs, arrangements are not measured: one instance has all cores, up to so many.
const TOO_LONG_TO_TRY: Duration = Duration::from_millis(500);
const THREADS_MAX: usize = 8;

/// The time for each arrangement of instances and threads.
const ARRANGEMENT_TIME: Duration = Duration::from_millis(150);

/// The CPU time that all of it takes on a core, at most.
pub const SIZING_TIME: Duration = Duration::from_secs(3);

/// Shorter batches gain nothing from further instances or threads: the tasks that submit requests
/// run them one after the other.
const WORTH_A_THREAD: Duration = Duration::from_millis(1);

/// The gain in rows a second for which a larger batch, or another instance, is used.
const GAIN_MIN: f64 = 1.05;

/// Maximum memory of the instances of a model.
const INSTANCES_BYTES_MAX: u64 = 1 << 30;

/// The sizes that are fixed; the others are to be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FixedSizes {
    /// Instances.
    pub instances: Option<usize>,
    /// Threads of a run.
    pub threads: Option<usize>,
    /// Maximum rows of a batch.
    pub max_batch_size: Option<usize>,
    /// The cores of the machine.
    pub cores: usize,
}

/// The chosen sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizing {
    /// Instances.
    pub instances: usize,
    /// Threads of a run.
    pub threads: usize,
    /// Maximum rows of a batch.
    pub max_batch_size: usize,
    /// The measurement that decided.
    pub reason: String,
}

/// A model whose sizes are to be chosen, loaded on the best provider.
pub(crate) struct Subject<'a> {
    pub(crate) backends: &'a Backends,
    pub(crate) kind: ProviderKind,
    pub(crate) source: &'a ModelSource<'a>,
    pub(crate) options: &'a LoadOptions,
    pub(crate) inspected: &'a Inspected,
    /// Whether its rows are proven to be independent.
    pub(crate) forms_batches: bool,
    /// The memory that loading it and running it once took.
    pub(crate) instance_bytes: u64,
}

/// Instances that run side by side, each with so many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrangement {
    instances: usize,
    threads: usize,
}

impl Subject<'_> {
    /// Choose the sizes. `model` is an instance of one thread.
    pub(crate) fn size(
        &self,
        model: &mut dyn Model,
        info: &ModelInfo,
        fixed: &FixedSizes,
    ) -> Sizing {
        let pool = &self.backends.pool;
        let single = Arrangement {
            instances: fixed.instances.unwrap_or(1),
            threads: fixed.threads.unwrap_or(1),
        };
        let largest = match fixed.max_batch_size {
            Some(size) => size.max(1),
            None => BATCH_SIZE_MAX,
        };
        let sizing = |arrangement: Arrangement, max_batch_size: usize, reason: String| Sizing {
            instances: arrangement.instances,
            threads: arrangement.threads,
            max_batch_size: fixed.max_batch_size.unwrap_or(max_batch_size),
            reason,
        };
        let largest = if self.forms_batches { largest } else { 1 };
        let sizes: &[usize] = if model.interrupt().is_none() {
            // Runs that cannot be ended get small inputs.
            &OPEN_SIZES[2..]
        } else if takes_pictures(info) {
            &OPEN_SIZES_OF_PICTURES
        } else {
            &OPEN_SIZES
        };
        let run = |inputs: &[Tensor]| run_if_short(model, inputs);
        let open = probe::open_size(info, pool, sizes, run);
        let made_up = |rows: usize| probe::inputs(info, rows, open, pool);
        let times = match times(model, made_up, largest) {
            Ok(times) => times,
            Err(error) => {
                let why = format!("not measured: it fails on zeros: {}", error.text);
                return sizing(single, BATCH_SIZE_MAX, why);
            }
        };
        let Some(Timed { rows, time }) = best(&times) else {
            return sizing(single, BATCH_SIZE_MAX, "not measured: one run takes too long".into());
        };
        // A larger batch than those that were measured gains nothing either.
        let max_batch_size = if rows * 2 > largest { largest } else { rows };
        let open_dims = match info.rows_are_alike() {
            true => String::new(),
            false => format!(" (open dimensions of {open})"),
        };
        let ms = time.as_secs_f64() * 1e3;
        let of_batch = format!("a batch of {rows}{open_dims} takes {ms:.3} ms");
        if time < WORTH_A_THREAD {
            let why = format!("{of_batch}, too short to be worth more threads");
            return sizing(single, max_batch_size, why);
        }
        if time > TOO_LONG_TO_TRY {
            let threads = match self.kind {
                ProviderKind::Tract => 1,
                _ => {
                    fixed.threads.unwrap_or((fixed.cores / single.instances).clamp(1, THREADS_MAX))
                }
            };
            let why = format!("{of_batch}, too long to try arrangements of instances and threads");
            return sizing(Arrangement { threads, ..single }, max_batch_size, why);
        }
        let (best, tried) = self.best_arrangement(fixed, (rows, open), single);
        sizing(best, max_batch_size, format!("{of_batch} on one thread; {tried}"))
    }

    /// The fastest arrangement, and what each does in a second.
    fn best_arrangement(
        &self,
        fixed: &FixedSizes,
        (rows, open): (usize, usize),
        single: Arrangement,
    ) -> (Arrangement, String) {
        let (mut best, mut best_rate) = (single, 0.0);
        let mut tried = Vec::new();
        for arrangement in arrangements(fixed, self.kind) {
            let bytes = self.instance_bytes.saturating_mul(arrangement.instances as u64);
            if arrangement.instances > 1 && bytes > INSTANCES_BYTES_MAX {
                tried.push(format!("{arrangement} would take {} MiB", bytes >> 20));
                continue;
            }
            match self.rate(arrangement, (rows, open)) {
                Ok(rate) => {
                    tried.push(format!("{arrangement}: {rate:.0} rows/s"));
                    // The first ones have the fewest instances.
                    if rate > best_rate * GAIN_MIN {
                        (best, best_rate) = (arrangement, rate);
                    }
                }
                Err(why) => tried.push(format!("{arrangement} failed: {why}")),
            }
        }
        (best, tried.join(", "))
    }

    /// The rows that an arrangement runs in a second, in batches of `rows` whose open dimensions
    /// have the size `open`.
    fn rate(&self, arrangement: Arrangement, (rows, open): (usize, usize)) -> Result<f64, String> {
        let Arrangement { instances, threads } = arrangement;
        let options = LoadOptions { instances, threads, ..self.options.clone() };
        let loaded = self.backends.load_on(self.kind, self.source, &options, self.inspected);
        let mut loaded = loaded.map_err(|error| error.to_string())?;
        let inputs = probe::inputs(&loaded.info, rows, open, &self.backends.pool);
        let inputs = inputs.map_err(|error| error.text.to_string())?;
        let barrier = Barrier::new(loaded.instances.len());
        let run = |model: &mut Box<dyn Model>| -> Result<(usize, Duration), ModelError> {
            let warmed = model.run(&inputs);
            // All wait for each other, also for one that failed.
            barrier.wait();
            warmed?;
            let (started, mut runs) = (Instant::now(), 0);
            while runs == 0 || started.elapsed() < ARRANGEMENT_TIME {
                model.run(&inputs)?;
                runs += 1;
            }
            Ok((runs, started.elapsed()))
        };
        let rates = std::thread::scope(|scope| {
            let all = loaded.instances.iter_mut().map(|model| scope.spawn(|| run(model)));
            let all: Vec<_> = all.collect();
            all.into_iter().map(|one| one.join()).collect::<Vec<_>>()
        });
        rates.into_iter().try_fold(0.0, |sum, one| match one {
            Ok(Ok((runs, time))) => Ok(sum + (runs * rows) as f64 / time.as_secs_f64()),
            Ok(Err(error)) => Err(error.text.to_string()),
            Err(_) => Err("it panicked".to_owned()),
        })
    }
}

impl std::fmt::Display for Arrangement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = |count: usize| if count == 1 { "" } else { "s" };
        let Self { instances, threads } = *self;
        write!(f, "{instances} instance{} of {threads} thread{}", s(instances), s(threads))
    }
}

/// What may be fastest: a run that uses all cores, a run on each core, and halves of both.
fn arrangements(fixed: &FixedSizes, kind: ProviderKind) -> Vec<Arrangement> {
    let cores = fixed.cores.max(1);
    // tract runs on the thread that calls it.
    let threads_of = |threads: usize| if kind == ProviderKind::Tract { 1 } else { threads };
    let mut all = Vec::new();
    for share in [1, 2.min(cores), cores / 2, cores] {
        let (instances, threads) = match (fixed.instances, fixed.threads) {
            (Some(instances), Some(threads)) => (instances, threads),
            (Some(instances), None) => (instances, threads_of((cores / instances).max(1))),
            (None, Some(threads)) => (share.min((cores / threads).max(1)), threads),
            (None, None) => (share, threads_of(cores / share.max(1))),
        };
        let arrangement =
            Arrangement { instances: instances.clamp(1, 64), threads: threads.max(1) };
        if !all.contains(&arrangement) {
            all.push(arrangement);
        }
    }
    all
}

/// A batch of so many rows, and the time of a run.
#[derive(Clone, Copy, Debug)]
struct Timed {
    rows: usize,
    time: Duration,
}

/// The times of batches of 1, 2, 4, ... rows, up to `largest`, or until larger ones gain nothing.
fn times(
    model: &mut dyn Model,
    made_up: impl Fn(usize) -> Result<Vec<Tensor>, ModelError>,
    largest: usize,
) -> Result<Vec<Timed>, ModelError> {
    let (mut spent, mut times) = (Duration::ZERO, Vec::<Timed>::new());
    let sizes = std::iter::successors(Some(1), |rows| Some(rows * 2));
    for rows in sizes.take_while(|rows| *rows <= largest) {
        let before = times.last().copied();
        let next = before.map_or(Duration::ZERO, |Timed { time, .. }| time * 2);
        if spent + next * 2 > SIZES_TIME {
            break;
        }
        let inputs = match made_up(rows) {
            Ok(inputs) => inputs,
            // Too large.
            Err(_) if before.is_some() => break,
            Err(error) => return Err(error),
        };
        let clock = RunClock::begin();
        match run_guarded(model, &inputs) {
            Err(_) if before.is_some() => break,
            ran => ran?,
        };
        let warm_up = time_of(&clock, model);
        // The first run of a size may prepare it. That matters for short ones.
        let (time, of_size) = match warm_up > LONG_RUN {
            true => (warm_up, Duration::ZERO),
            false => fastest(model, &inputs)?,
        };
        spent += warm_up + of_size;
        times.push(Timed { rows, time });
        if gain_nothing(&times) {
            // Other programs may have slowed both down, so they are measured once more.
            let from = times.len() - 2;
            for again in times[from..].iter_mut().filter(|timed| timed.time < LONG_RUN) {
                let (time, of_size) = fastest(model, &made_up(again.rows)?)?;
                again.time = again.time.min(time);
                spent += of_size;
            }
            if gain_nothing(&times) {
                break;
            }
        }
    }
    Ok(times)
}

/// The shortest time of some runs of a batch, and the time of all of them.
fn fastest(model: &mut dyn Model, inputs: &[Tensor]) -> Result<(Duration, Duration), ModelError> {
    let (mut time, mut all) = (Duration::MAX, Duration::ZERO);
    while time == Duration::MAX || time < LONG_RUN && all < SIZE_TIME {
        let clock = RunClock::begin();
        model.run(inputs)?;
        let took = time_of(&clock, model);
        (time, all) = (time.min(took), all + took);
    }
    Ok((time, all))
}

/// Whether the last two sizes run no more rows a second than the one before them.
fn gain_nothing(times: &[Timed]) -> bool {
    matches!(times, [.., first, second, third]
        if rate(second) < rate(first) * GAIN_MIN && rate(third) < rate(first) * GAIN_MIN)
}

/// The time that a run took. It is at least a tenth of the real time, so the real time of all runs
/// is bounded, too.
fn time_of(clock: &RunClock, model: &dyn Model) -> Duration {
    clock.took(model).max(clock.passed() / WALL_PER_CPU)
}

/// Run it once, if that takes no longer than [`TOO_LONG_TO_TRY`]. A run that had to wait for a core
/// for most of that time is tried once more, with more real time.
fn run_if_short(model: &mut dyn Model, inputs: &[Tensor]) -> Result<(), ModelError> {
    let clock = RunClock::begin();
    let first = run_within(model, inputs, TOO_LONG_TO_TRY);
    let waited = clock.passed() >= TOO_LONG_TO_TRY && clock.took(model) < TOO_LONG_TO_TRY / 2;
    let ran = match first {
        Err(_) if waited => run_within(model, inputs, TOO_LONG_TO_TRY * WALL_PER_CPU),
        first => first,
    };
    ran.map(drop)
}

fn rate(Timed { rows, time }: &Timed) -> f64 {
    *rows as f64 / time.as_secs_f64().max(1e-9)
}

/// The smallest batch that runs almost as many rows a second as the fastest one.
fn best(times: &[Timed]) -> Option<Timed> {
    let fastest = times.iter().map(rate).fold(0.0, f64::max);
    times.iter().find(|timed| rate(timed) * GAIN_MIN >= fastest).copied()
}

/// Whether an input has the dimensions of pictures: rows, height, width, and 1, 3 or 4 channels,
/// which come second or last.
fn takes_pictures(info: &ModelInfo) -> bool {
    let channels = |dim: Option<usize>| matches!(dim, Some(1 | 3 | 4));
    info.inputs.iter().any(|input| match input.dims[..] {
        [_, second, _, last] => channels(second) || channels(last),
        _ => false,
    })
}

/// The memory that this process holds now. Source: proc_pid_status(5).
pub(crate) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() << 10
}

#[cfg(test)]
mod tests;
