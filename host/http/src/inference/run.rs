//! Running a model or a pipeline for a client of the protocol.

use gristmill_batch::Submission;
use gristmill_core::{ClientError, ErrorCode};
use gristmill_oip::{InferRequest, Output, OutputData};
use gristmill_serve::{
    Chosen, LoadedModel, NamedTenant, PIPELINE_VERSION, PipelineAnswer, Target, TrialPart, Variant,
    Work, choose, request_span, run_variant,
};
use gristmill_transport::Problem;
use tracing::Instrument;

use super::Inference;
use super::asked::{InferenceCall, Ran, given_priority};
use super::classes::Ranking;
use super::models::RESPONSE;
use super::named::NamedCall;
use super::pipeline::{output_of, plugin_request};
use crate::plugin_error::problem_of;

impl Inference {
    /// Run a model or a pipeline.
    ///
    /// # Errors
    /// The caller is the operator, the request does not fit the model, or the model or a plugin
    /// fails.
    pub(crate) async fn run(
        &self,
        asked: &mut InferenceCall<'_>,
        request: &mut InferRequest,
    ) -> Result<Ran, Problem> {
        let mut ran = self.run_target(asked, request).await;
        if let Err(problem) = &mut ran
            && problem.code == ErrorCode::QueueFull
        {
            // The words of Triton, with which its clients compare the text.
            problem.detail.insert_str(0, "Exceeds maximum queue size: ");
        }
        ran
    }

    async fn run_target(
        &self,
        asked: &mut InferenceCall<'_>,
        request: &mut InferRequest,
    ) -> Result<Ran, Problem> {
        match asked.target {
            Target::Model(model) => self.run_model(asked, model, request).await,
            Target::Pipeline { name, route } => {
                // Of the pipeline, also if its candidate runs the request.
                let signature = route.signature.clone();
                let known_names: Vec<&str> = match &signature {
                    Some(signature) => {
                        signature.outputs.iter().map(|out| &*out.info.name).collect()
                    }
                    None => vec![RESPONSE],
                };
                check_outputs(name.as_str(), known_names.iter().copied(), request)?;
                if request.outputs.iter().any(|output| output.classes > 0) {
                    let detail = "a pipeline's output has no classes: its postprocessing does that";
                    return Err(Problem::new(ErrorCode::InvalidRequest, detail));
                }
                let Chosen { route, part } = choose(route, asked.sticky);
                asked.context.variant = part.as_ref().map(|part| part.variant);
                let variant = asked.context.variant.map(Variant::as_str);
                let trace_id = asked.context.trace_id();
                let span = request_span(&route, &asked.context.id, variant, trace_id.as_deref());
                let work = asked.work(route, request);
                match signature {
                    Some(signature) => {
                        let named = NamedCall { work, signature, part };
                        Box::pin(self.run_named(asked, named, request)).instrument(span).await
                    }
                    None => {
                        let work = Box::pin(run_pipeline(asked, work, part, request));
                        work.instrument(span).await
                    }
                }
            }
        }
    }

    async fn run_model(
        &self,
        asked: &mut InferenceCall<'_>,
        model: LoadedModel<'_>,
        request: &mut InferRequest,
    ) -> Result<Ran, Problem> {
        let LoadedModel { name, version, served, notes } = model;
        let caller = asked.caller.tenant()?;
        let NamedTenant { name: tenant_name, tenant } = caller;
        let inputs = self.inputs(served, asked.caller, request).await?;
        let known_outputs = served.lane.info().outputs.iter().map(|info| &*info.name);
        check_outputs(name.as_str(), known_outputs, request)?;
        let receipt = &mut asked.context.receipt;
        let submission = Submission {
            tenant: tenant_name.clone(),
            weight: tenant.weight,
            priority: given_priority(request),
            timeout: request.timeout,
            inputs,
            arrived: receipt.record().arrived,
            deadline: asked.deadline,
            keeps_apart: tenant.keeps_apart,
            more_follow: false,
        };
        if let Some(direct) = tenant.models.get(name) {
            receipt.charge_to(direct.clone());
        }
        let outcome = caller.run_model(name, &served.lane, submission, receipt).await;
        if let Err(error) = &outcome
            && error.code() == ErrorCode::ModelFailed
        {
            let (request_id, tenant) = (&*asked.context.id, tenant_name.as_str());
            let model = name.as_str();
            tracing::warn!(request_id, tenant, model, %error, "request failed");
        }
        let outputs = served.lane.info().outputs.iter().zip(outcome?);
        let outputs = outputs.map(|(info, tensor)| Output {
            name: info.name.clone(),
            datatype: tensor.dtype(),
            shape: tensor.shape().into(),
            data: OutputData::Tensor(tensor),
        });
        let outputs = asked_for(outputs.collect(), request);
        let ranking = Ranking { notes, has_rows: served.lane.info().forms_batches };
        let outputs = self.classified(asked.caller, ranking, request, outputs).await?;
        Ok(Ran { version, outputs })
    }
}

async fn run_pipeline(
    asked: &mut InferenceCall<'_>,
    work: Work,
    part: Option<TrialPart>,
    request: &InferRequest,
) -> Result<Ran, Problem> {
    let request = plugin_request(&work.route, request)?;
    let answer = run_variant(&work, request, part, &mut asked.context.receipt).await;
    let PipelineAnswer { outcome, lines } = answer;
    let response = outcome.map_err(|error| problem_of(error, &work.route, &lines));
    if asked.context.is_sampled() {
        asked.context.lines = lines;
    }
    let response = response?;
    Ok(Ran { version: PIPELINE_VERSION, outputs: vec![output_of(response)?] })
}

/// Check that the model has every output that is asked for, and that none is asked for twice.
fn check_outputs<'a>(
    model: &str,
    mut known_names: impl Iterator<Item = &'a str> + Clone,
    request: &InferRequest,
) -> Result<(), Problem> {
    for (index, asked) in request.outputs.iter().enumerate() {
        if !known_names.clone().any(|name| name == asked.name) {
            let names: Vec<_> = known_names.by_ref().collect();
            let detail =
                format!("unknown output {:?} of model {model:?}: it has {names:?}", asked.name);
            return Err(Problem::new(ErrorCode::InvalidRequest, detail));
        }
        // Each of them is an output of the model, so there are no more before than it has.
        if request.outputs[..index].iter().any(|before| before.name == asked.name) {
            let detail = format!("output {:?} is asked for twice", asked.name);
            return Err(Problem::new(ErrorCode::InvalidRequest, detail));
        }
    }
    Ok(())
}

/// The requested outputs, in the request's order. If it names none, all outputs in the model's
/// order.
fn asked_for(mut outputs: Vec<Output>, request: &InferRequest) -> Vec<Output> {
    if !request.outputs.is_empty() {
        let position =
            |output: &Output| request.outputs.iter().position(|asked| *asked.name == *output.name);
        outputs.retain(|output| position(output).is_some());
        outputs.sort_by_key(position);
    }
    outputs
}
