//! All requests once, or several times, each checked against its expectation.

use std::sync::Arc;

use anyhow::Result;
use gristmill_snapshot::Mismatches;
use gristmill_snapshot::Route;
use gristmill_state::{Expectation, SampleAnswer};

use super::expectation;
use super::requests::{Sample, Samples};
use crate::request_run::{Ran, RequestRun};

/// How requests are run and checked.
#[derive(Clone, Copy)]
pub(super) struct Checks {
    pub(super) tolerance: f64,
    /// How often each request is run; at least once.
    pub(super) repeat: usize,
    /// Which expectations are written.
    pub(super) update: Update,
}

/// Which expectations are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Update {
    Never,
    /// Those of answers that tell no failure, and of failures that were expected before.
    Successes,
    All,
}

/// A request that was run and checked.
pub(super) struct Tested<'a> {
    pub(super) sample: &'a Sample,
    pub(super) runs: Vec<Ran>,
    /// The first run that failed, otherwise the first run.
    pub(super) shown: usize,
    pub(super) passed: bool,
    pub(super) has_expectation: bool,
    /// Whether the expectation was written now.
    pub(super) written: bool,
    /// Whether it was not written because the answer tells a failure.
    pub(super) is_unwritten: bool,
    /// How the answer of the shown run differs.
    pub(super) mismatches: Mismatches,
}

/// Check requests that were run, in the order of the samples, and report each.
pub(super) fn check_all(
    samples: &Samples,
    runs: Vec<Vec<Ran>>,
    checks: Checks,
    mut report: impl FnMut(&Tested<'_>),
) -> Result<()> {
    let expectations = expectations(samples)?;
    for ((sample, expectation), runs) in samples.list.iter().zip(expectations).zip(runs) {
        report(&check(sample, runs, expectation, checks)?);
    }
    Ok(())
}

/// The expectations of all samples, as they are in the files.
///
/// # Errors
/// A file is faulty.
pub(super) fn expectations(samples: &Samples) -> Result<Vec<Option<Expectation>>> {
    samples.list.iter().map(|sample| expectation::read(&sample.expectation)).collect()
}

/// Run all requests, and report each when it is checked.
pub(super) async fn round(
    route: &Arc<Route>,
    samples: &Samples,
    checks: Checks,
    mut report: impl FnMut(&Tested<'_>),
) -> Result<()> {
    // A faulty expectation is found before anything runs.
    for (sample, expectation) in samples.list.iter().zip(expectations(samples)?) {
        let mut runs = Vec::with_capacity(checks.repeat);
        for _ in 0..checks.repeat {
            let Sample { head, body, .. } = sample;
            let id = "plugin-test";
            runs.push(RequestRun { route, id, head, body, is_charged: false }.run().await);
        }
        report(&check(sample, runs, expectation, checks)?);
    }
    Ok(())
}

fn check(
    sample: &Sample,
    runs: Vec<Ran>,
    mut expectation: Option<Expectation>,
    checks: Checks,
) -> Result<Tested<'_>> {
    let mismatches_of = |expectation: &Option<Expectation>, ran: &Ran| {
        let expectation = expectation.as_ref()?;
        Some(expectation.mismatches(&ran.answer, checks.tolerance))
    };
    let (mut written, mut is_unwritten) = (false, false);
    let is_met =
        mismatches_of(&expectation, &runs[0]).is_some_and(|mismatches| mismatches.is_empty());
    if checks.update != Update::Never
        && !is_met
        && let Some(made) = expectation::of(&runs[0].answer)
    {
        let was_expected = expectation.as_ref().is_some_and(expectation::is_of_failure);
        is_unwritten = checks.update == Update::Successes
            && expectation::is_of_failure(&made)
            && !was_expected;
        if !is_unwritten {
            expectation::write(&made, &sample.expectation)?;
            (expectation, written) = (Some(made), true);
        }
    }
    let is_wrong = |ran: &Ran| match mismatches_of(&expectation, ran) {
        Some(mismatches) => !mismatches.is_empty(),
        // Without an expectation a request has to succeed.
        None => matches!(ran.answer, SampleAnswer::Failed(_)) || ran.answer.status() >= 400,
    };
    let wrong = runs.iter().position(is_wrong);
    let shown = wrong.unwrap_or(0);
    let mismatches = mismatches_of(&expectation, &runs[shown]).unwrap_or_default();
    Ok(Tested {
        sample,
        shown,
        passed: wrong.is_none(),
        has_expectation: expectation.is_some(),
        written,
        is_unwritten,
        mismatches,
        runs,
    })
}
