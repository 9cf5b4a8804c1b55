//! A pipeline with named inputs and outputs: each row of the inputs is a request for it, and its
//! JSON answers become the outputs.
//!
//! `inputs` makes the requests, with `json_body` for bodies in JSON, and `outputs` the tensors;
//! `row` names a row that fails, and `time` ends conversions at the deadline. Either all rows are
//! answered, or the first one that fails is the request's error.

mod inputs;
mod json_body;
mod outputs;
mod row;
mod time;

use std::sync::Arc;
use std::time::Instant;

use gristmill_core::{ErrorCode, Name, Stage};
use gristmill_oip::InferRequest;
use gristmill_serve::{FailedRow, PIPELINE_VERSION, RowsAnswer, TrialPart, Work, run_rows};
use gristmill_snapshot::Signature;
use gristmill_transport::{INLINE_BYTES_MAX, Problem};

use self::inputs::Rows;
use self::row::in_row;
use self::time::TimeLeft;
use super::Inference;
use super::asked::{InferenceCall, Ran};
use crate::plugin_error::problem_of;

/// A call of a pipeline with named inputs and outputs.
pub(super) struct NamedCall {
    pub(super) work: Work,
    /// Of the pipeline, also if its candidate runs the request.
    pub(super) signature: Arc<Signature>,
    pub(super) part: Option<TrialPart>,
}

impl Inference {
    /// Run all rows of a request. Large ones are converted off the serving threads.
    ///
    /// # Errors
    /// The inputs do not fit, the quota is used up, or a row fails.
    pub(super) async fn run_named(
        &self,
        asked: &mut InferenceCall<'_>,
        named: NamedCall,
        request: &mut InferRequest,
    ) -> Result<Ran, Problem> {
        let NamedCall { work, signature, part } = named;
        let (budget, tenant) = (work.route.quota.bytes.clone(), asked.caller.name());
        let rows = Rows::of(&signature, std::mem::take(&mut request.inputs))?;
        let count = rows.count;
        asked.caller.tenant()?.count_rows(
            count as u64,
            Instant::now(),
            &mut asked.context.quota,
        )?;
        let time = TimeLeft::of(asked.context.receipt.record().arrived, work.context.deadline);
        let bytes = rows.bytes();
        let (limit, inputs_budget) = (work.route.limits.body_bytes, budget.clone());
        let inputs_signature = signature.clone();
        let make = move || rows.requests(&inputs_signature, limit, &inputs_budget, time);
        let requests = self.inline_or_offloaded(bytes, tenant, make).await?;
        let answer = run_rows(&work, requests, part, &mut asked.context.receipt).await;
        let RowsAnswer { outcome, lines } = answer;
        let outcome = outcome.map_err(|FailedRow { row, error }| {
            in_row(problem_of(error, &work.route, &lines), row, count)
        });
        if asked.context.is_sampled() {
            asked.context.lines = lines;
        }
        let responses = outcome?;
        // Each output is another way through the answers.
        let bytes: usize = responses.iter().map(|row| row.body.len()).sum();
        let bytes = bytes.saturating_mul(signature.outputs.len());
        let wanted = wanted(&signature, request);
        let outputs_signature = signature.clone();
        let make = move || outputs::outputs(&outputs_signature, &wanted, &responses, &budget, time);
        let outputs = self.inline_or_offloaded(bytes, tenant, make).await;
        let outputs = outputs.inspect_err(|problem| {
            if problem.code == ErrorCode::PluginInvalidOutput {
                let plugin = work.route.program.source_of(Stage::Post).plugin.as_str();
                tracing::warn!(plugin, error = problem.detail, "request failed");
            }
        })?;
        Ok(Ran { version: PIPELINE_VERSION, outputs })
    }

    /// Do work on so many bytes, off the serving threads if they are many.
    async fn inline_or_offloaded<T: Send + 'static>(
        &self,
        bytes: usize,
        tenant: Option<&Name>,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        match bytes <= INLINE_BYTES_MAX {
            true => work(),
            false => self.offload().run(tenant, work).await?,
        }
    }
}

/// The places of the outputs that a request asks for, in its order; all of them if it names none.
fn wanted(signature: &Signature, request: &InferRequest) -> Vec<usize> {
    if request.outputs.is_empty() {
        return (0..signature.outputs.len()).collect();
    }
    let place = |name: &str| {
        signature.outputs.iter().position(|known_output| *known_output.info.name == *name)
    };
    request.outputs.iter().filter_map(|asked| place(&asked.name)).collect()
}
