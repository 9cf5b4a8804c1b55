//! Running a model or a pipeline for a client of the protocol.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use gristmill_batch::{Submission, SubmitError};
use gristmill_control::{Change, ControlError};
use gristmill_core::{
    BufferPool, ByteBudget, Deadline, Dtype, ErrorCode, Name, NamedTensor, Shape, Tensor,
};
use gristmill_oip::{InferRequest, Input, Output, OutputData, ParseError, from_texts};
use gristmill_pipeline::{InferError, Queueing, Timings, infer};
use gristmill_sandbox::Request;
use gristmill_snapshot::{Route, ServedModel, Snapshot};
use tracing::Instrument;

use super::Inference;
use super::access::{Caller, PIPELINE_VERSION, Target};
use super::models::{REQUEST, RESPONSE};
use crate::body;
use crate::data::{problem_of_pipeline, request_span};
use crate::offload::INLINE_BYTES_MAX;
use crate::problem::Problem;

/// A request on its way to a model.
pub(super) struct Asked<'a> {
    pub(super) caller: Caller<'a>,
    pub(super) model: &'a str,
    pub(super) version: &'a str,
    /// The request's id, for the log.
    pub(super) id: &'a str,
    pub(super) arrived: Instant,
    pub(super) deadline: Deadline,
}

/// What came of it.
pub(super) struct Answered {
    pub(super) version: u64,
    pub(super) outputs: Vec<Output>,
    /// What ran the model, where it has several things that can.
    pub(super) provider: Option<&'static str>,
}

impl Inference {
    /// When a request that arrived at `arrived` is over.
    pub(super) fn deadline(&self, arrived: Instant) -> Deadline {
        Deadline::at(arrived + self.parts.config.timeout)
    }

    /// What runs the model that is asked for.
    pub(super) fn target<'a>(
        &self,
        snapshot: &'a Snapshot,
        asked: &Asked<'a>,
    ) -> Result<Target<'a>, Problem> {
        asked.caller.find(snapshot, asked.model, asked.version)?.served()
    }

    /// Load or unload a model, which takes the admin token.
    pub(super) async fn set_loaded(
        &self,
        caller: Caller<'_>,
        model: &str,
        load: bool,
        mut parameters: impl Iterator<Item = &'_ str>,
    ) -> Result<(), Problem> {
        caller.operates()?;
        let brings = |name: &&str| *name == "config" || name.starts_with("file:");
        if let Some(name) = parameters.find(brings) {
            let detail = format!(
                "parameter {name:?} is not supported: files and configurations are put through the admin API"
            );
            return Err(Problem::new(ErrorCode::Unsupported, detail));
        }
        let wrong = |error| Problem::new(ErrorCode::NotFound, format!("model: {error}"));
        let model: Name = model.parse().map_err(wrong)?;
        let control = &self.parts.control;
        let failed = |error: ControlError| Problem::new(error.code(), error.to_string());
        let released = match load {
            true => control.load_model(&model).await,
            false => control.release(vec![Change::UnloadModel { model: model.clone() }]).await,
        };
        released.map_err(failed)?;
        // A model that failed to load before, and does again, is no new fault of this change.
        match control.cell().load().models.get(&model).map(|state| state.served.clone()) {
            Some(Err(why)) if load => Err(Problem::new(ErrorCode::InvalidModel, why)),
            _ => Ok(()),
        }
    }

    /// Run it.
    pub(super) async fn run(
        &self,
        asked: &Asked<'_>,
        target: &Target<'_>,
        request: &mut InferRequest,
    ) -> Result<Answered, Problem> {
        let (tenant, state) = asked.caller.tenant()?;
        match target {
            Target::Model { name, state: model, served } => {
                let submission = Submission {
                    tenant: tenant.clone(),
                    weight: state.weight,
                    priority: given_priority(request),
                    timeout: request.timeout,
                    inputs: self.inputs(served, asked, request).await?,
                    arrived: asked.arrived,
                    deadline: asked.deadline,
                };
                let outcome = run_model(name, served, submission, request).await;
                let (outputs, provider) = outcome.inspect_err(|problem| {
                    if problem.code == ErrorCode::ModelFailed {
                        let request_id = self.parts.request_ids.of_text(asked.id);
                        let (tenant, model) = (tenant.as_str(), name.as_str());
                        tracing::warn!(
                            request_id,
                            tenant,
                            model,
                            error = problem.detail,
                            "request failed"
                        );
                    }
                })?;
                Ok(Answered { version: model.version, outputs, provider })
            }
            Target::Pipeline { name, route } => {
                let span = request_span(route, &self.parts.request_ids.of_text(asked.id));
                let way = Box::pin(run_pipeline(name, route, asked, request));
                let (output, provider) = way.instrument(span).await?;
                Ok(Answered { version: PIPELINE_VERSION, outputs: vec![output], provider })
            }
        }
    }

    /// The request's tensors, by the model's own names.
    async fn inputs(
        &self,
        served: &ServedModel,
        asked: &Asked<'_>,
        request: &mut InferRequest,
    ) -> Result<Vec<NamedTensor>, Problem> {
        let known = &served.lane.info().inputs;
        let names = || known.iter().map(|info| &*info.name).collect::<Vec<_>>();
        let inputs = &mut request.inputs;
        if inputs.len() > known.len() {
            let (given, names) = (inputs.len(), names());
            let detail = format!("{given} inputs are given: the model's inputs are {names:?}");
            return Err(Problem::new(ErrorCode::InvalidRequest, detail));
        }
        let named = |input: &Input| {
            let info = known.iter().find(|info| *info.name == *input.name);
            info.map(|info| info.name.clone()).ok_or_else(|| {
                let (name, names) = (&input.name, names());
                let detail = format!("unknown input {name:?}: the model's inputs are {names:?}");
                Problem::new(ErrorCode::InvalidRequest, detail)
            })
        };
        let long: usize = inputs.iter().filter(|i| i.takes_work()).map(|i| i.data.len()).sum();
        if long <= INLINE_BYTES_MAX {
            let tensor = |input: &mut Input| {
                let name = named(input)?;
                let tensor = made(input, asked.caller.budget(), self.pool())?;
                Ok(NamedTensor { name, tensor })
            };
            return inputs.iter_mut().map(tensor).collect();
        }
        let names: Vec<_> = inputs.iter().map(named).collect::<Result<_, _>>()?;
        let mut inputs = std::mem::take(inputs);
        let (budget, pool) = (asked.caller.budget().cloned(), self.pool().clone());
        let make = move || {
            let tensors = inputs.iter_mut().map(|input| made(input, budget.as_ref(), &pool));
            tensors.collect::<Result<Vec<_>, _>>()
        };
        let tensors = self.parts.offload.run(asked.caller.name(), make).await??;
        let named = names.into_iter().zip(tensors);
        Ok(named.map(|(name, tensor)| NamedTensor { name, tensor }).collect())
    }
}

/// An input's tensor. Where its bytes have to be copied for that, the copy counts in their place; for texts, what a
/// backend makes of them counts too.
fn made(
    input: &mut Input,
    budget: Option<&Arc<ByteBudget>>,
    pool: &BufferPool,
) -> Result<Tensor, Problem> {
    let (len, is_aligned) = (input.data.len(), input.is_aligned());
    let copied = if is_aligned { 0 } else { len };
    let reserve = |budget| body::try_reserved(copied + input.run_bytes(), budget);
    if let Some(held) = budget.map(reserve).transpose()?.flatten() {
        let mut data = std::mem::take(&mut input.data);
        if !is_aligned {
            let mut copy = pool.begin(len);
            copy.append(&data);
            data = Bytes::from_owner(copy);
        }
        input.data = held.keep(data);
    }
    input.tensor(pool).map_err(refused)
}

async fn run_model(
    name: &Name,
    served: &ServedModel,
    submission: Submission,
    request: &InferRequest,
) -> Result<(Vec<Output>, Option<&'static str>), Problem> {
    let known = served.lane.info().outputs.iter().map(|info| &*info.name);
    check_outputs(name.as_str(), known, request)?;
    let Submission { arrived, deadline, .. } = submission;
    let answering = served.lane.submit(submission);
    let answered = tokio::time::timeout_at(deadline.instant().into(), answering).await;
    let answered = answered.map_err(|_| late(arrived, deadline))?;
    let answered = answered.map_err(|error| problem_of(&error))?;
    let mut outputs = answered.outputs;
    if !request.outputs.is_empty() {
        let position = |output: &NamedTensor| {
            request.outputs.iter().position(|asked| *asked.name == *output.name)
        };
        outputs.retain(|output| position(output).is_some());
        outputs.sort_by_key(position);
    }
    let outputs = outputs.into_iter().map(|NamedTensor { name, tensor }| Output {
        name,
        datatype: tensor.dtype(),
        shape: tensor.shape().into(),
        data: OutputData::Tensor(tensor),
    });
    Ok((outputs.collect(), answered.provider))
}

/// The model has every output that is asked for.
fn check_outputs<'a>(
    model: &str,
    mut known: impl Iterator<Item = &'a str> + Clone,
    request: &InferRequest,
) -> Result<(), Problem> {
    for asked in &request.outputs {
        if !known.clone().any(|name| name == asked.name) {
            let known: Vec<_> = known.by_ref().collect();
            let detail =
                format!("unknown output {:?} of model {model:?}: it has {known:?}", asked.name);
            return Err(Problem::new(ErrorCode::InvalidRequest, detail));
        }
    }
    Ok(())
}

fn given_priority(request: &InferRequest) -> Option<u32> {
    Some(request.priority).filter(|priority| *priority > 0)
}

async fn run_pipeline(
    name: &Name,
    route: &Route,
    asked: &Asked<'_>,
    request: &InferRequest,
) -> Result<(Output, Option<&'static str>), Problem> {
    check_outputs(name.as_str(), [RESPONSE].into_iter(), request)?;
    let body = pipeline_body(request)?;
    if body.len() > route.limits.body_bytes {
        let limit = route.limits.body_bytes;
        let detail = format!("{REQUEST} is over the pipeline's limit of {limit} bytes");
        return Err(Problem::new(ErrorCode::BodyTooLarge, detail));
    }
    let own = Deadline::at(asked.arrived + route.limits.timeout);
    let deadline = own.min(asked.deadline);
    let queueing = Queueing { priority: given_priority(request), timeout: request.timeout };
    let request = Request {
        content_type: None,
        headers: Vec::new(),
        query: Vec::new(),
        settings: route.settings.clone(),
        body,
        parts: Vec::new(),
    };
    let mut timings = Timings::default();
    let answered = infer(route, request, (deadline, queueing), &mut timings).await;
    let answered = answered.map_err(|error| match error {
        // The one that applied, which may be the client's own.
        InferError::DeadlineExceeded(_) => late(asked.arrived, deadline),
        other => problem_of_pipeline(&other, route),
    })?;
    if answered.status >= 400 {
        // The protocol has no place for a status beside an answer.
        let code = match answered.status {
            ..500 => ErrorCode::InvalidRequest,
            _ => ErrorCode::PluginFailed,
        };
        if code == ErrorCode::PluginFailed {
            tracing::warn!(status = answered.status, "the pipeline answered with an error");
        }
        let text = String::from_utf8_lossy(&answered.body);
        let detail = format!("the pipeline answered with status {}: {text}", answered.status);
        return Err(Problem::new(code, detail));
    }
    let data = from_texts(&[&answered.body]);
    let output = Output {
        name: RESPONSE.into(),
        datatype: Dtype::String,
        shape: Shape::from_elem(1, 1),
        data: OutputData::Bytes(data.into()),
    };
    Ok((output, timings.provider))
}

/// The one element of `REQUEST`, which may be any bytes.
fn pipeline_body(request: &InferRequest) -> Result<Bytes, Problem> {
    let wrong = |detail: String| Problem::new(ErrorCode::InvalidRequest, detail);
    let [input] = &request.inputs[..] else {
        let detail =
            format!("{} inputs are given, a pipeline has one: {REQUEST}", request.inputs.len());
        return Err(wrong(detail));
    };
    if input.name != REQUEST {
        return Err(wrong(format!("unknown input {:?}: a pipeline's is {REQUEST}", input.name)));
    }
    let not_one =
        || wrong(format!("{REQUEST} has shape {:?}, a pipeline wants [1]", &input.shape[..]));
    // Before its elements are taken apart, which may be many.
    if input.shape.iter().any(|size| *size != 1) {
        return Err(not_one());
    }
    input.texts().map_err(refused)?.pop().ok_or_else(not_one)
}

/// What a request gets that was not answered by its deadline.
fn late(arrived: Instant, deadline: Deadline) -> Problem {
    let given = deadline.instant().saturating_duration_since(arrived);
    let detail = format!("no answer within {} ms", given.as_millis());
    Problem::new(ErrorCode::DeadlineExceeded, detail)
}

/// A body that is no request.
pub(super) fn refused(error: ParseError) -> Problem {
    let code = match error {
        ParseError::OverBudget(error) => return error.into(),
        ParseError::TooLarge { .. } => ErrorCode::BodyTooLarge,
        _ if error.is_unsupported() => ErrorCode::Unsupported,
        _ => ErrorCode::InvalidRequest,
    };
    Problem::new(code, error.to_string())
}

/// A model's refusal, where the client itself made the tensors.
fn problem_of(error: &SubmitError) -> Problem {
    let code = match error {
        SubmitError::Input(_) | SubmitError::TooManyRows { .. } => ErrorCode::InvalidRequest,
        other => other.code(),
    };
    Problem::new(code, error.to_string()).retried_after(error)
}
