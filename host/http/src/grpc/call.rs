//! One call: its caller, its deadline, and running a model for it.
//!
//! Invariant: a request of a stream sees the snapshot of its own time, in which the key must still
//! be valid.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_core::{ByteBudget, Deadline, Name, Outcome, OverBudget, Receipt, Stage};
use gristmill_metrics::Edge;
use gristmill_oip::grpc::proto::infer_parameter::ParameterChoice;
use gristmill_oip::grpc::proto::{
    InferParameter, ModelInferRequest, ModelInferResponse, ModelRepositoryParameter,
};
use gristmill_oip::grpc::{number, output_of, requested_output, tensors, typed_bytes};
use gristmill_oip::{InferRequest, ParseError, Room};
use gristmill_serve::{
    Caller, Key, ModelOrPipeline, NamedModel, OwnedCaller, RequestQuota, Target, Variant,
};
use gristmill_snapshot::Snapshot;
use gristmill_transport::{INLINE_BYTES_MAX, Problem, body};
use http::{HeaderMap, HeaderValue};
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Request, Status};

use super::status::{status_of, timeout};
use crate::answers::key_of;
use crate::inference::{Brought, Inference, InferenceCall, Ran, RepositoryChange};
use crate::observer::{RequestContext, RequestNames, UnderWay};
use crate::receipt_header;

/// The parameter of an answer that names the variant of the pipeline that made it.
const VARIANT: &str = "gristmill_variant";

/// The parameter of a request that asks for a receipt, and that of the answer with it.
const RECEIPT: &str = "gristmill_receipt";

fn is_true(parameter: &InferParameter) -> bool {
    parameter.parameter_choice == Some(ParameterChoice::BoolParam(true))
}

/// A call whose caller is known. `plane` makes it once. It travels with the call as one of its
/// extensions, so that the caller is found once, and all of the call sees one snapshot. Each
/// message of a stream is a call of its own, with the snapshot of its time.
#[derive(Clone)]
pub(super) struct Admitted {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) caller: OwnedCaller,
    pub(super) key: Option<Key>,
    /// When the call began.
    pub(super) arrived: Instant,
    /// How long it took to find the caller.
    pub(super) auth: Duration,
    /// The trace headers of the call.
    pub(super) trace: TraceHeaders,
}

/// `traceparent` and `tracestate` of a call.
#[derive(Clone, Default)]
pub(super) struct TraceHeaders([Option<HeaderValue>; 2]);

impl TraceHeaders {
    fn of(headers: &HeaderMap) -> Self {
        Self(["traceparent", "tracestate"].map(|name| headers.get(name).cloned()))
    }

    fn get(&self, name: &str) -> Option<&str> {
        let [parent, state] = &self.0;
        let value = if name == "traceparent" { parent } else { state };
        value.as_ref()?.to_str().ok()
    }
}

/// A request of a call.
pub(super) struct GrpcRequest {
    pub(super) admitted: Admitted,
    pub(super) deadline: Deadline,
}

impl Admitted {
    pub(super) fn caller(&self) -> Caller<'_> {
        self.caller.get()
    }
}

/// The caller that `plane` found.
///
/// # Errors
/// The call did not come through `plane`.
pub(super) fn admitted<T>(request: &Request<T>) -> Result<&Admitted, Status> {
    request.extensions().get::<Admitted>().ok_or_else(not_admitted)
}

/// The same, taken out of a call's extensions.
///
/// # Errors
/// The call did not come through `plane`.
pub(super) fn take_admitted(extensions: &mut Extensions) -> Result<Admitted, Status> {
    extensions.remove::<Admitted>().ok_or_else(not_admitted)
}

fn not_admitted() -> Status {
    Status::internal("the call was not admitted")
}

/// The time until which the client waits for a call that began at `arrived`, if it says so.
pub(super) fn client_deadline(metadata: &MetadataMap, arrived: Instant) -> Option<Deadline> {
    let timeout = timeout(metadata.get("grpc-timeout")?.to_str().ok()?)?;
    Some(Deadline::at(arrived + timeout))
}

/// What is known of a caller, who may be refused.
#[derive(Default)]
pub(super) struct Known {
    /// The tenant's quota of requests, if it has one.
    pub(super) quota: Option<RequestQuota>,
    /// The tenant, if its quota is used up.
    pub(super) tenant: Option<Name>,
}

impl Inference {
    /// Find the caller with the key in these headers in the current snapshot, and count the call if
    /// the caller is a tenant.
    ///
    /// # Errors
    /// The key is missing, or it is not a key of any tenant, or the tenant's quota is used up.
    pub(super) fn admit(
        &self,
        headers: &HeaderMap,
        arrived: Instant,
        known_caller: &mut Known,
    ) -> Result<Admitted, Problem> {
        let snapshot = self.snapshot();
        let key = key_of(headers, self.gate(), &snapshot);
        let admitted = self.admit_to(snapshot, key, arrived, known_caller)?;
        Ok(Admitted { trace: TraceHeaders::of(headers), ..admitted })
    }

    /// Find the caller with this key, which was admitted before, in the current snapshot, and count
    /// the request.
    ///
    /// # Errors
    /// The key is not a key of any tenant any more, or the tenant's quota is used up.
    pub(super) fn admit_again(
        &self,
        key: Option<Key>,
        arrived: Instant,
    ) -> Result<Admitted, Problem> {
        // A message has no headers that could tell what is left of its tenant's quota.
        self.admit_to(self.snapshot(), key, arrived, &mut Known::default())
    }

    fn admit_to(
        &self,
        snapshot: Arc<Snapshot>,
        key: Option<Key>,
        arrived: Instant,
        known_caller: &mut Known,
    ) -> Result<Admitted, Problem> {
        let caller = self.gate().caller(&snapshot, key, None)?;
        if let Ok(tenant) = caller.tenant() {
            let counted = tenant.count_request(arrived, &mut known_caller.quota);
            if counted.is_err() {
                known_caller.tenant = Some(tenant.name.clone());
            }
            counted?;
        }
        let caller = caller.owned();
        let (auth, trace) = (arrived.elapsed(), TraceHeaders::default());
        Ok(Admitted { snapshot, caller, key, arrived, auth, trace })
    }

    /// A request whose client waits until `own_deadline`, if it says so.
    pub(super) fn request(
        &self,
        admitted: Admitted,
        own_deadline: Option<Deadline>,
    ) -> GrpcRequest {
        let deadline = self.deadline(admitted.arrived);
        GrpcRequest {
            deadline: own_deadline.map_or(deadline, |own_deadline| deadline.min(own_deadline)),
            admitted,
        }
    }

    /// Answer a request whose contents already count against the budget.
    pub(super) async fn infer_in(
        &self,
        request: &GrpcRequest,
        message: ModelInferRequest,
    ) -> Result<ModelInferResponse, Problem> {
        let mut receipt = Receipt::open(request.admitted.arrived);
        let record = receipt.note();
        record.auth = Some(request.admitted.auth);
        record.request_bytes = bytes_of(&message);
        let trace = &request.admitted.trace;
        let names = RequestNames {
            edge: Edge::Grpc,
            span: "inference.GRPCInferenceService/ModelInfer",
            method: "ModelInfer",
            path: "/inference.GRPCInferenceService/ModelInfer",
            client: None,
        };
        let header = |name: &str| trace.get(name);
        let context = RequestContext::new(self.id_of(&message.id), receipt);
        let mut under_way = UnderWay::begin(self.observer(), names, context, header);
        let context = &mut under_way.context;
        context.receipt.enters(Stage::Read);
        if context.is_observed {
            context.receipt.note().tenant = request.admitted.caller().name().cloned();
        }
        let wants_receipt = message.parameters.get(RECEIPT).is_some_and(is_true);
        let mut outcome = self.infer_noting(request, message, context).await;
        let (ends, bytes) = match &outcome {
            Ok(answer) => {
                (Outcome::Answered, answer.raw_output_contents.iter().map(Bytes::len).sum())
            }
            Err(problem) => (Outcome::Failed(problem.code), 0),
        };
        let record = context.receipt.close(ends, bytes);
        if let Ok(answer) = &mut outcome
            && wants_receipt
        {
            let parameter_choice = Some(ParameterChoice::StringParam(receipt_header::text(record)));
            answer.parameters.insert(RECEIPT.into(), InferParameter { parameter_choice });
        }
        under_way.answered();
        outcome
    }

    async fn infer_noting(
        &self,
        request: &GrpcRequest,
        message: ModelInferRequest,
        context: &mut RequestContext,
    ) -> Result<ModelInferResponse, Problem> {
        let caller = request.admitted.caller();
        let ModelInferRequest {
            model_name,
            model_version,
            id,
            parameters,
            inputs,
            outputs,
            raw_input_contents,
        } = message;
        let model = NamedModel { name: &model_name, version: &model_version };
        let target = caller.find(&request.admitted.snapshot, model)?.served()?;
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
        let mut parsed = InferRequest {
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
        // A stream has its headers once, for all of its requests, so a parameter takes their place.
        let sticky = |name: &str| match parameters.get(name)?.parameter_choice.as_ref()? {
            ParameterChoice::StringParam(text) => Some(text.as_bytes()),
            _ => None,
        };
        context.receipt.read();
        let deadline = request.deadline;
        let mut asked = InferenceCall { caller, target, deadline, sticky: &sticky, context };
        let Ran { version, outputs } = self.run(&mut asked, &mut parsed).await?;
        let named = |variant: Variant| {
            let choice = ParameterChoice::StringParam(variant.as_str().into());
            (VARIANT.into(), InferParameter { parameter_choice: Some(choice) })
        };
        let (outputs, raw_output_contents) = outputs.into_iter().map(output_of).unzip();
        Ok(ModelInferResponse {
            model_name,
            model_version: version.to_string(),
            id,
            parameters: context.variant.map(named).into_iter().collect(),
            outputs,
            raw_output_contents,
        })
    }

    /// Load or unload a model.
    ///
    /// # Errors
    /// The caller is not the operator, a parameter is not supported, or the change fails.
    pub(super) async fn change_repository(
        &self,
        caller: Caller<'_>,
        change: RepositoryChange<'_>,
        parameters: &HashMap<String, ModelRepositoryParameter>,
    ) -> Result<(), Status> {
        let changed = async {
            caller.operates()?;
            self.change_model(caller, change, Brought::of_grpc(parameters.iter())?).await
        };
        changed.await.map_err(|problem: Problem| status_of(&problem))
    }
}

/// Describe a model by `with`, if the caller may see it.
///
/// # Errors
/// The model does not exist, the caller may not see it, or it is not loaded.
pub(super) fn describe<T, R>(
    request: &Request<R>,
    model: NamedModel<'_>,
    with: impl FnOnce(Caller<'_>, ModelOrPipeline<'_>, &Target<'_>) -> T,
) -> Result<T, Status> {
    let admitted = admitted(request)?;
    let described = || {
        let caller = admitted.caller();
        let visible = caller.find(&admitted.snapshot, model)?;
        Ok(with(caller, visible, &visible.served()?))
    };
    described().map_err(|problem: Problem| status_of(&problem))
}

/// The bytes of a request's tensors.
fn bytes_of(message: &ModelInferRequest) -> usize {
    let raw: usize = message.raw_input_contents.iter().map(Bytes::len).sum();
    raw + typed_bytes(&message.inputs)
}

/// Let a request's contents count against its tenant's budget until they are dropped.
///
/// # Errors
/// The budget has no room for them.
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
