//! Running a request of a pipeline that may have a candidate, and may keep requests.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use gristmill_core::{ClientError, Receipt};

use crate::pipeline::{PipelineAnswer, Work};
use crate::shadow::Shadow;
use crate::variant::{Counted, Part};

/// Run a request. If the pipeline has a candidate, the request counts in its evaluation when its
/// receipt is closed; and if the candidate is a shadow, it may run the request once this is
/// answered. If the pipeline keeps requests, this may be one of them.
pub async fn run_variant(work: Work, part: Option<Part>, receipt: &mut Receipt) -> PipelineAnswer {
    let capture = work.route.capture.as_ref();
    let capturing = capture.and_then(|own| own.begin(&work.request, &work.request_id));
    let answer = run_counted(work, part, receipt).await;
    if let Some(capturing) = capturing {
        capturing.answered(answer.outcome.as_ref().map_err(ClientError::code));
    }
    answer
}

async fn run_counted(work: Work, part: Option<Part>, receipt: &mut Receipt) -> PipelineAnswer {
    let Some(Part { variant, evaluation, shadowed, own_model }) = part else {
        return work.run(receipt).await;
    };
    let timeout = work.route.limits.timeout;
    let given = work.deadline.instant().saturating_duration_since(Instant::now());
    let counted = Arc::new(Counted {
        own_model,
        is_hurried: given < timeout / 2 || work.queueing.timeout.is_some(),
        patience: evaluation.bounds().latency.unwrap_or(timeout).min(timeout / 2),
        is_error: AtomicBool::new(false),
        evaluation,
        variant,
    });
    receipt.charge_to(counted.clone());
    let shadow = shadowed.and_then(|route| Shadow::of(&route, &work));
    let answer = work.run(receipt).await;
    counted.note(&answer.outcome);
    if let Some(shadow) = shadow {
        shadow.start(&answer.outcome);
    }
    answer
}
