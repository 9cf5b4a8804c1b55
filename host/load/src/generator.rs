//! Making load with one or more threads, and reporting while they run.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::arrivals::Pace;
use crate::load::{Load, LoadError};
use crate::measured::{Measured, Tally};
use crate::score::Counts;
use crate::worker::Worker;

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The time since it began.
    pub elapsed: Duration,
    /// Answers since the last report.
    pub answered: u64,
    /// Errors since the run began.
    pub failed: u64,
    /// Whether it is still warming up.
    pub is_warm_up: bool,
}

/// Make the load, and report about each second.
///
/// # Errors
/// The server cannot be reached at the begin, or the system refuses something.
pub fn run(load: &Load, mut report: impl FnMut(Progress)) -> Result<Measured, LoadError> {
    let shared = Arc::new(load.clone());
    let workers = (0..load.threads.max(1)).map(|number| Worker::open(&shared, number));
    let workers: Vec<Worker> = workers.collect::<Result<_, _>>()?;

    let counts = Arc::new(Counts::default());
    let begin = Instant::now();
    let tallies = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for worker in workers {
            let thread = std::thread::Builder::new().name("load".into());
            let counts = &counts;
            // If one thread fails, the others end, too.
            let spawned = thread.spawn_scoped(scope, move || {
                worker.run(counts, begin).inspect_err(|_| counts.stops.store(true, Relaxed))
            });
            // The scope waits for the threads that run already.
            running.push(spawned.inspect_err(|_| counts.stops.store(true, Relaxed))?);
        }
        let is_running = || running.iter().any(|thread| !thread.is_finished());
        let mut last = 0;
        while is_running() {
            let next = begin.elapsed().as_secs() + 1;
            while begin.elapsed().as_secs() < next && is_running() {
                std::thread::sleep(Duration::from_millis(20));
            }
            let answered = counts.answered.load(Relaxed);
            let elapsed = begin.elapsed();
            report(Progress {
                elapsed: elapsed.min(load.warm_up + load.duration),
                answered: answered - last,
                failed: counts.failed.load(Relaxed),
                is_warm_up: elapsed < load.warm_up,
            });
            last = answered;
        }
        let ended =
            running.into_iter().map(|thread| thread.join().map_err(|_| LoadError::Panicked)?);
        ended.collect::<Result<Vec<Tally>, LoadError>>()
    })?;
    let mut all = Tally::new(load.duration);
    tallies.iter().for_each(|tally| all.add(tally));
    let measured = all.measured(load.duration);
    Ok(match load.pace {
        Pace::Closed { connections } => Measured { connections: Some(connections), ..measured },
        Pace::Open { rate, .. } => Measured { rate: Some(rate), ..measured },
    })
}
