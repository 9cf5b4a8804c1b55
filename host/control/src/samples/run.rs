//! Running samples side by side, within a time for all of them.
//!
//! Invariant: a sample runs as a request of its tenant, so its plugin calls and rows count against
//! the tenant's quota. All samples of a change have one time together and end with its client.
//! Answers that are large are compared a few at a time, over all changes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use gristmill_snapshot::Mismatches;
use gristmill_state::{Sample, SampleAnswer, SampleFailure};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use crate::error::ControlError;
use crate::samples::failed::{FailedSample, FailedSamples};
use crate::samples::shown::{ShownSample, ShownSamples};
use crate::samples::subject::SampleSubject;
use crate::samples::variant::Variant;
use crate::samples::{SampleRun, SampleRunner};
use crate::task::joined;

/// Maximum samples that a change runs side by side.
const SAMPLES_AT_ONCE: usize = 4;

/// How long a sample that finds the tenant or the model busy is tried again, and how often.
const BUSY_TIME: Duration = Duration::from_secs(10);
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// The largest answer that is compared on a serving thread.
const QUICK_BYTES_MAX: usize = 64 << 10;

/// Maximum large answers that are compared side by side.
pub(crate) const LARGE_CHECKS: usize = 2;

/// The end of a sample.
enum Ended {
    Passed,
    Failed(FailedSample),
    /// It was not compared.
    Shown(ShownSample),
}

/// Runs the samples of pipelines.
pub(crate) struct SampleRuns {
    pub(crate) runner: Arc<dyn SampleRunner>,
    /// The time for all samples of a change.
    pub(crate) timeout: Duration,
    /// Places for comparing large answers, which takes many times their memory. All changes share
    /// them.
    pub(crate) large_checks: Arc<Semaphore>,
}

impl SampleRuns {
    /// Run all samples of these pipelines. They take their time from `left`. Their answers are
    /// added to `shown` if there is one, and compared otherwise. Dropping the future ends them.
    ///
    /// # Errors
    /// [`FailedSamples`]: all that failed, or did not end in time.
    pub(crate) async fn run(
        &self,
        subjects: &[SampleSubject],
        left: &mut Duration,
        mut shown: Option<&mut ShownSamples>,
    ) -> Result<(), ControlError> {
        let began = Instant::now();
        let mut all = Vec::new();
        for subject in subjects {
            for sample in subject.samples() {
                all.push(self.run_one(subject, sample, shown.is_none()));
            }
        }
        let mut waiting = all.len();
        let mut running = stream::iter(all).buffer_unordered(SAMPLES_AT_ONCE);
        let mut failed = FailedSamples::within(self.timeout.as_secs());
        while let Ok(Some(ended)) = timeout_at(began + *left, running.next()).await {
            waiting -= 1;
            match (ended?, &mut shown) {
                (Ended::Failed(one), _) => failed.add(one),
                (Ended::Shown(one), Some(shown)) => shown.add(one),
                _ => {}
            }
        }
        failed.add_late(waiting);
        *left = left.saturating_sub(began.elapsed());
        if failed.is_empty() { Ok(()) } else { Err(failed.sorted().into()) }
    }

    async fn run_one(
        &self,
        subject: &SampleSubject,
        sample: &Sample,
        is_compared: bool,
    ) -> Result<Ended, ControlError> {
        let (route, variant) = (&subject.route, subject.variant);
        let (tenant, pipeline) = (subject.tenant.clone(), subject.pipeline.clone());
        let began = Instant::now();
        let is_tried_again =
            |failure: &SampleFailure| failure.code.is_busy() && began.elapsed() < BUSY_TIME;
        loop {
            let run = SampleRun { route, name: &sample.name, request: &sample.request };
            let answer = self.runner.run(run).await;
            if !is_compared {
                if matches!(&answer, SampleAnswer::Failed(failure) if is_tried_again(failure)) {
                    sleep(BUSY_PAUSE).await;
                    continue;
                }
                let (is_candidate, answer) = (variant == Variant::Candidate, Some(answer));
                let sample = sample.name.clone();
                return Ok(Ended::Shown(ShownSample {
                    tenant,
                    pipeline,
                    is_candidate,
                    sample,
                    answer,
                }));
            }
            let (mismatches, failure) = check(sample, answer, &self.large_checks).await?;
            if mismatches.is_empty() {
                return Ok(Ended::Passed);
            }
            if failure.as_ref().is_some_and(is_tried_again) {
                sleep(BUSY_PAUSE).await;
                continue;
            }
            let sample = sample.name.clone();
            return Ok(Ended::Failed(FailedSample {
                tenant,
                pipeline,
                variant,
                sample,
                mismatches,
                failure,
            }));
        }
    }
}

/// How the answer differs, and why there is no response, if there is none.
async fn check(
    sample: &Sample,
    answer: SampleAnswer,
    places: &Arc<Semaphore>,
) -> Result<(Mismatches, Option<SampleFailure>), ControlError> {
    let is_large = |answer: &SampleAnswer| match answer {
        SampleAnswer::Response { body, .. } => body.len() > QUICK_BYTES_MAX,
        SampleAnswer::Failed(_) => false,
    };
    let mismatches = if is_large(&answer) {
        let (sample, answer) = (sample.clone(), answer.clone());
        // The work goes on when the change has ended, and so it keeps its place.
        let place = places.clone().acquire_owned().await;
        let checking = tokio::task::spawn_blocking(move || {
            let _place = place;
            sample.mismatches(&answer)
        });
        joined("checked a sample", checking).await?
    } else {
        sample.mismatches(&answer)
    };
    let failure = match answer {
        SampleAnswer::Failed(failure) => Some(failure),
        SampleAnswer::Response { .. } => None,
    };
    Ok((mismatches, failure))
}
