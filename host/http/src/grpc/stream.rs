//! The requests of a stream of messages, each in a task of its own.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_core::{ByteBudget, Deadline, HeldBytes, HostTime};
use gristmill_oip::grpc::proto::infer_parameter::ParameterChoice;
use gristmill_oip::grpc::proto::{
    InferParameter, ModelInferRequest, ModelInferResponse, ModelStreamInferResponse,
};
use gristmill_serve::Key;
use gristmill_transport::{InTurns, Problem, Requests, body};
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Status};

use super::call::{Admitted, TraceHeaders, admitted, client_deadline, hold_contents};
use super::status::status_of;
use crate::inference::Inference;

/// The parameter of a response that is the last one to its request.
const FINAL_RESPONSE: &str = "triton_final_response";

/// Runs the requests of one stream. It keeps no snapshot, because a stream may stay open for long.
pub(super) struct Requester {
    inference: Inference,
    key: Option<Key>,
    /// The trace headers of the stream: each of its requests is a part of the same trace.
    trace: TraceHeaders,
    /// How long it took to find the stream's caller.
    auth: Duration,
    /// The budget of the stream's caller.
    budget: Option<Arc<ByteBudget>>,
    /// The time until which the client waits for the stream.
    own_deadline: Option<Deadline>,
    /// The bytes of the stream's next message while it arrives.
    held: Option<Arc<HeldBytes>>,
    /// The counts of the stream's connection.
    connection: Option<Arc<Requests>>,
}

impl Requester {
    /// # Errors
    /// The call did not come through `plane`.
    pub(super) fn of<T>(inference: Inference, stream: &Request<T>) -> Result<Self, Status> {
        let admitted = admitted(stream)?;
        Ok(Self {
            inference,
            key: admitted.key,
            trace: admitted.trace.clone(),
            auth: admitted.auth,
            budget: admitted.caller().budget().cloned(),
            own_deadline: client_deadline(stream.metadata(), admitted.arrived),
            held: stream.extensions().get().cloned(),
            connection: stream.extensions().get().cloned(),
        })
    }

    /// Run a request in a task of its own. It ends at its deadline and its answer is counted,
    /// whether or not the stream is read. Until then the connection counts it as under way.
    pub(super) fn answer(
        &self,
        mut message: ModelInferRequest,
    ) -> impl Future<Output = Result<ModelStreamInferResponse, Status>> + use<> {
        // From here on each request counts its own bytes.
        if let Some(held) = &self.held {
            held.release();
        }
        let budget = self.budget.as_ref();
        // Each request sees the models of its own time, and its key must still be valid.
        let admitted = self.inference.admit_again(self.key, Instant::now());
        let (inference, auth, own_deadline) =
            (self.inference.clone(), self.auth, self.own_deadline);
        let trace = self.trace.clone();
        let ongoing = self.connection.as_ref().map(Requests::begin);
        let failed = ModelInferResponse {
            model_name: message.model_name.clone(),
            model_version: message.model_version.clone(),
            id: message.id.clone(),
            ..Default::default()
        };
        let held = budget.map(|budget| budget.hold(0));
        let counted = hold_contents(&mut message, budget);
        let host = HostTime::current().unwrap_or_default();
        let answering = AbortOnDropHandle::new(tokio::spawn(InTurns::new(host, async move {
            let _ongoing = ongoing;
            counted?;
            let request = inference.request(Admitted { auth, trace, ..admitted? }, own_deadline);
            let answer = inference.infer_in(&request, message).await?;
            let bytes = answer.raw_output_contents.iter().map(Bytes::len).sum();
            body::count(held.as_ref(), bytes)?;
            Ok((answer, held))
        })));
        async move {
            let answered = answering.await.map_err(|error| Status::internal(error.to_string()))?;
            let (error, mut answer) = match answered {
                Ok((answer, _held)) => (String::new(), answer),
                Err::<_, Problem>(problem) => (status_of(&problem).message().into(), failed),
            };
            answer.parameters.insert(
                FINAL_RESPONSE.into(),
                InferParameter { parameter_choice: Some(ParameterChoice::BoolParam(true)) },
            );
            Ok(ModelStreamInferResponse { error_message: error, infer_response: Some(answer) })
        }
    }
}
