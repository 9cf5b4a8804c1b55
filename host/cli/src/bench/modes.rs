//! What is measured: one load, several, or the highest that meets an objective.

use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

use anyhow::Result;
use gristmill_load::{Arrivals, Load, Measured, Pace, Progress, run};

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mode {
    /// The load that was asked for.
    Quick,
    /// Several numbers of connections.
    Matrix,
    /// The highest rate that meets an objective.
    Sustained(Objective),
}

/// What a sustained rate has to meet. Besides, nothing fails.
#[derive(Clone, Copy, Debug)]
pub(super) struct Objective {
    pub(super) p99_us: u64,
}

const MATRIX: [usize; 5] = [1, 4, 16, 64, 256];

/// The connections with which the server's capacity is found, and the most of an open loop.
const CAPACITY_CONNECTIONS: usize = 64;
const OPEN_CONNECTIONS: usize = 256;

/// The looks for the highest rate: each halves what is not known.
const STEPS: usize = 7;

/// The share of the rate that must be answered: less means that a queue grows.
const KEPT_UP: f64 = 0.98;

impl Objective {
    fn is_met(self, measured: &Measured) -> bool {
        let rate = measured.rate.unwrap_or_default();
        measured.latency_us.p99 <= self.p99_us
            && measured.failed() == 0
            && measured.per_second >= rate * KEPT_UP
    }
}

/// Measure. Progress is shown on a terminal.
pub(super) fn measure(mode: Mode, load: &Load) -> Result<Vec<Measured>> {
    let closed = |connections| Load { pace: Pace::Closed { connections }, ..load.clone() };
    match mode {
        Mode::Quick => Ok(vec![once(load, "")?]),
        Mode::Matrix => {
            let all = MATRIX.into_iter();
            all.map(|connections| {
                once(&closed(connections), &format!("{connections} connections: "))
            })
            .collect()
        }
        Mode::Sustained(objective) => sustained(objective, &closed(CAPACITY_CONNECTIONS)),
    }
}

/// All rates that were tried, and at the end the highest that met the objective.
fn sustained(objective: Objective, closed: &Load) -> Result<Vec<Measured>> {
    let capacity = once(closed, "capacity: ")?;
    let open = |rate: f64| {
        let pace = Pace::Open { rate, arrivals: Arrivals::Poisson, connections: OPEN_CONNECTIONS };
        once(&Load { pace, ..closed.clone() }, &format!("{rate:.0} a second: "))
    };
    let (mut met, mut missed) = (0.0, capacity.per_second * 1.2);
    let mut tried = Vec::new();
    let mut best = None;
    for _ in 0..STEPS {
        let rate = (met + missed) / 2.0;
        if rate < 1.0 {
            break;
        }
        let measured = open(rate)?;
        if objective.is_met(&measured) {
            met = rate;
            best = Some(measured);
        } else {
            missed = rate;
            tried.push(measured);
        }
    }
    tried.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
    tried.extend(best);
    Ok(tried)
}

/// One load. Progress is shown on a terminal, after `what`.
pub(super) fn once(load: &Load, what: &str) -> Result<Measured> {
    let shows = stderr().is_terminal();
    let whole = load.warm_up + load.duration;
    let measured = run(load, |progress| {
        if shows {
            let _ = write!(stderr(), "\r\x1b[K{what}{}", progress_text(&progress, whole));
        }
    })?;
    if shows {
        let _ = write!(stderr(), "\r\x1b[K");
    }
    Ok(measured)
}

fn progress_text(progress: &Progress, whole: Duration) -> String {
    let Progress { elapsed, answered, failed, is_warm_up } = progress;
    let stage = if *is_warm_up { ", warming up" } else { "" };
    let (elapsed, whole) = (elapsed.as_secs_f64(), whole.as_secs_f64());
    format!("{elapsed:.0} of {whole:.0} s{stage}: {answered} answers a second, {failed} failed")
}
