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
use crate::samples::subject::SampleSubject;
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
    /// Run all samples of these pipelines. They take their time from `left`. Dropping the future
    /// ends them.
    ///
    /// # Errors
    /// [`FailedSamples`]: all that failed, or did not end in time.
    pub(crate) async fn run(
        &self,
        subjects: &[SampleSubject],
        left: &mut Duration,
    ) -> Result<(), ControlError> {
        let began = Instant::now();
        let mut all = Vec::new();
        for subject in subjects {
            for sample in subject.samples() {
                all.push(self.run_one(subject, sample));
            }
        }
        let mut waiting = all.len();
        let mut running = stream::iter(all).buffer_unordered(SAMPLES_AT_ONCE);
        let mut failed = FailedSamples::within(self.timeout.as_secs());
        while let Ok(Some(ended)) = timeout_at(began + *left, running.next()).await {
            waiting -= 1;
            ended?.into_iter().for_each(|one| failed.add(one));
        }
        failed.add_late(waiting);
        *left = left.saturating_sub(began.elapsed());
        if failed.is_empty() { Ok(()) } else { Err(failed.sorted().into()) }
    }

    /// Run a sample. Returns it if it failed.
    async fn run_one(
        &self,
        subject: &SampleSubject,
        sample: &Sample,
    ) -> Result<Option<FailedSample>, ControlError> {
        let SampleSubject { tenant, pipeline, variant, route, .. } = subject;
        let began = Instant::now();
        loop {
            let run = SampleRun { route, name: &sample.name, request: &sample.request };
            let answer = self.runner.run(run).await;
            let (mismatches, failure) = check(sample, answer, &self.large_checks).await?;
            if mismatches.is_empty() {
                return Ok(None);
            }
            if failure.as_ref().is_some_and(|failure| failure.code.is_busy())
                && began.elapsed() < BUSY_TIME
            {
                sleep(BUSY_PAUSE).await;
                continue;
            }
            let (tenant, pipeline, sample) =
                (tenant.clone(), pipeline.clone(), sample.name.clone());
            let variant = *variant;
            return Ok(Some(FailedSample {
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
