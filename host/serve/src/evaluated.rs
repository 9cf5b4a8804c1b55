//! Running a request of a pipeline that may have a candidate, and may keep requests; alone, or as
//! one of the rows of a request (`rows`).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use gristmill_core::{ClientError, Receipt};
use gristmill_sandbox::{Request, RunCount};
use gristmill_snapshot::Route;

use crate::pipeline::{PipelineAnswer, Work};
use crate::shadow::Shadow;
use crate::variant::{Counted, TrialPart};

/// Run a client's request. If the pipeline has a candidate, the request counts in its evaluation
/// when its receipt is closed; and if the candidate is a shadow, it may run the request once this
/// is answered. If the pipeline keeps requests, this may be one of them.
pub async fn run_variant(
    work: &Work,
    request: Request,
    part: Option<TrialPart>,
    receipt: &mut Receipt,
) -> PipelineAnswer {
    Evaluated::begin(work, part, receipt).run(work, request, receipt).await
}

/// What the rows of a request share: its place in the evaluation of a candidate, if there is one,
/// and the count of its runs of models.
#[derive(Default)]
pub(crate) struct Evaluated {
    counted: Option<Arc<Counted>>,
    /// The pipeline whose candidate also runs the request, as a shadow.
    shadowed: Option<Arc<Route>>,
    runs: RunCount,
}

impl Evaluated {
    /// Charge the request of this work: to the evaluation, and to the pipeline.
    pub(crate) fn begin(work: &Work, part: Option<TrialPart>, receipt: &mut Receipt) -> Self {
        let evaluated = part.map(|part| Self::of(work, part)).unwrap_or_default();
        if let Some(counted) = &evaluated.counted {
            receipt.charge_to(counted.clone());
        }
        receipt.charge_to(work.route.clone());
        evaluated
    }

    fn of(work: &Work, part: TrialPart) -> Self {
        let TrialPart { variant, evaluation, shadowed, own_model } = part;
        let timeout = work.route.limits.timeout;
        let given_time = work.context.deadline.instant().saturating_duration_since(Instant::now());
        let counted = Counted {
            own_model,
            is_hurried: given_time < timeout / 2 || work.queueing.timeout.is_some(),
            patience: evaluation.bounds().latency.unwrap_or(timeout).min(timeout / 2),
            is_error: AtomicBool::new(false),
            evaluation,
            variant,
        };
        Self { counted: Some(Arc::new(counted)), shadowed, runs: RunCount::default() }
    }

    /// Run the request, or one of its rows.
    pub(crate) async fn run(
        &self,
        work: &Work,
        request: Request,
        receipt: &mut Receipt,
    ) -> PipelineAnswer {
        let id = &work.context.request_id;
        let capturing = work.route.capture.as_ref().and_then(|rule| rule.begin(&request, id));
        let shadow = self.shadowed.as_ref().and_then(|route| Shadow::of(route, &request, id));
        let answer = work.run(request, &self.runs, receipt).await;
        if let Some(counted) = &self.counted {
            counted.note(&answer.outcome);
        }
        if let Some(shadow) = shadow {
            shadow.start(&answer.outcome);
        }
        if let Some(capturing) = capturing {
            capturing.answered(answer.outcome.as_ref().map_err(ClientError::code));
        }
        answer
    }
}
