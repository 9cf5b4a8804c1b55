//! Running a request of a pipeline that may have a candidate.

use crate::pipeline::{PipelineAnswer, Work};
use crate::shadow::Shadow;
use crate::variant::{Counted, Part};

/// Run a request. If the pipeline has a candidate, the request counts in its evaluation when its
/// receipt is closed; and if the candidate is a shadow, it may run the request once this is
/// answered.
pub async fn run(mut work: Work, part: Option<Part>) -> PipelineAnswer {
    let Some(Part { variant, evaluation, shadowed }) = part else { return work.run().await };
    let counted = Counted::new(evaluation, variant);
    work.receipt.charge_to(counted.clone());
    let shadow = shadowed.and_then(|route| Shadow::of(&route, &work));
    let answer = work.run().await;
    counted.note(&answer.outcome);
    if let Some(shadow) = shadow {
        shadow.start(&answer.outcome);
    }
    answer
}
