//! One call: its caller, its deadline, and running a model for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_core::{ByteBudget, Deadline, OverBudget, Receipt};
use gristmill_oip::grpc::proto::{ModelInferRequest, ModelInferResponse, ModelRepositoryParameter};
use gristmill_oip::grpc::{number, output_of, requested_output, tensors, typed_bytes};
use gristmill_oip::{InferRequest, ParseError, Room};
use gristmill_serve::{AccessError, Caller, Key, ModelOrPipeline, Target};
use gristmill_snapshot::Snapshot;
use gristmill_transport::{INLINE_BYTES_MAX, Problem, body};
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use super::status::{status_of, timeout};
use crate::inference::{Asked, Inference, Ran};

/// A call whose caller is known. The caller is found once and travels with the call as one of its
/// extensions, so that all of the call sees one snapshot.
#[derive(Clone)]
pub(super) struct Admitted {
    pub(super) snapshot: Arc<Snapshot>,
    /// When the call began, and how long it took to find its caller.
    pub(super) arrived: Instant,
    pub(super) auth: Duration,
    pub(super) key: Option<Key>,
}

/// A request of a call.
pub(super) struct Call {
    pub(super) admitted: Admitted,
    arrived: Instant,
    deadline: Deadline,
}

/// The caller that `plane` found.
///
/// # Errors
/// The call came by another way than `plane`.
pub(super) fn admitted<T>(request: &Request<T>) -> Result<&Admitted, Status> {
    let admitted = request.extensions().get::<Admitted>();
    admitted.ok_or_else(|| Status::internal("the call was not admitted"))
}

/// The time that the client allows for the call.
pub(super) fn own_timeout(metadata: &MetadataMap) -> Option<Duration> {
    timeout(metadata.get("grpc-timeout")?.to_str().ok()?)
}

impl Inference {
    /// The caller of an admitted call.
    pub(super) fn admitted<'a>(&self, admitted: &'a Admitted) -> Result<Caller<'a>, AccessError> {
        self.gate().caller(&admitted.snapshot, admitted.key, None)
    }

    /// A request that arrived at `arrived`, in a call whose client waits until `own`.
    pub(super) fn call(&self, admitted: Admitted, arrived: Instant, own: Option<Instant>) -> Call {
        let deadline = self.deadline(arrived);
        let deadline = own.map_or(deadline, |own| deadline.min(Deadline::at(own)));
        Call { admitted, arrived, deadline }
    }

    /// Answer a request whose contents already count against the budget.
    pub(super) async fn infer_in(
        &self,
        call: &Call,
        message: ModelInferRequest,
    ) -> Result<ModelInferResponse, Problem> {
        let mut receipt = Receipt::open(call.arrived);
        let record = receipt.note();
        record.stages.auth = Some(call.admitted.auth);
        record.request_bytes = bytes_of(&message);
        match self.infer_noting(call, message, &mut receipt).await {
            Ok(answer) => {
                receipt.answered(answer.raw_output_contents.iter().map(Bytes::len).sum());
                Ok(answer)
            }
            Err(problem) => {
                receipt.failed(problem.code);
                Err(problem)
            }
        }
    }

    async fn infer_noting(
        &self,
        call: &Call,
        message: ModelInferRequest,
        receipt: &mut Receipt,
    ) -> Result<ModelInferResponse, Problem> {
        let caller = self.admitted(&call.admitted)?;
        let ModelInferRequest {
            model_name,
            model_version,
            id,
            parameters,
            inputs,
            outputs,
            raw_input_contents,
        } = message;
        let asked = Asked {
            caller,
            model: &model_name,
            version: &model_version,
            id: &id,
            deadline: call.deadline,
        };
        let target = asked.target(&call.admitted.snapshot)?;
        let outputs = outputs.into_iter().map(requested_output);
        let most = self.message_bytes_max();
        let inputs = if typed_bytes(&inputs) <= INLINE_BYTES_MAX {
            tensors(inputs, raw_input_contents, &Room::new(caller.budget(), most))?
        } else {
            let budget = caller.budget().cloned();
            let make =
                move || tensors(inputs, raw_input_contents, &Room::new(budget.as_ref(), most));
            self.offload().run(caller.name(), make).await??
        };
        let mut request = InferRequest {
            id: None,
            inputs,
            outputs: outputs.collect::<Result<_, ParseError>>()?,
            binary_output: true,
            priority: number(&parameters, "priority")?
                .unwrap_or_default()
                .try_into()
                .unwrap_or(u32::MAX),
            timeout: number(&parameters, "timeout")?
                .filter(|us| *us > 0)
                .map(Duration::from_micros),
        };
        let Ran { version, outputs } = self.run(&asked, &target, (&mut request, receipt)).await?;
        let (outputs, raw_output_contents) = outputs.into_iter().map(output_of).unzip();
        Ok(ModelInferResponse {
            model_name,
            model_version: version.to_string(),
            id,
            parameters: HashMap::new(),
            outputs,
            raw_output_contents,
        })
    }

    /// Apply `describe` to the model of this name and version, if the caller may see it.
    pub(super) fn describe_for<T, R>(
        &self,
        request: &Request<R>,
        (name, version): (&str, &str),
        describe: impl FnOnce(Caller<'_>, ModelOrPipeline<'_>, &Target<'_>) -> T,
    ) -> Result<T, Status> {
        let admitted = admitted(request)?;
        let described = || {
            let caller = self.admitted(admitted)?;
            let visible = caller.find(&admitted.snapshot, name, version)?;
            Ok(describe(caller, visible, &visible.served()?))
        };
        described().map_err(|problem: Problem| status_of(&problem))
    }

    pub(super) async fn change_model(
        &self,
        admitted: &Admitted,
        change: (&str, bool),
        parameters: &HashMap<String, ModelRepositoryParameter>,
    ) -> Result<(), Status> {
        let changing = async {
            let caller = self.admitted(admitted)?;
            self.set_loaded(caller, change, parameters.keys().map(String::as_str)).await
        };
        changing.await.map_err(|problem: Problem| status_of(&problem))
    }
}

/// The bytes of a request's tensors.
fn bytes_of(message: &ModelInferRequest) -> usize {
    let raw: usize = message.raw_input_contents.iter().map(Bytes::len).sum();
    raw + typed_bytes(&message.inputs)
}

/// Let a request's contents count against its tenant's budget until they are dropped.
pub(super) fn hold_contents(
    message: &mut ModelInferRequest,
    budget: Option<&Arc<ByteBudget>>,
) -> Result<(), OverBudget> {
    let Some(budget) = budget else { return Ok(()) };
    let typed = message.inputs.iter_mut().map(|input| &mut input.contents);
    for contents in message.raw_input_contents.iter_mut().chain(typed) {
        *contents = body::try_held(std::mem::take(contents), budget)?;
    }
    Ok(())
}
