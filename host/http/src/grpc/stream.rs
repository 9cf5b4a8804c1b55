//! The requests of a stream of messages, each in a task of its own.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::ByteBudget;
use gristmill_oip::grpc::proto::infer_parameter::ParameterChoice;
use gristmill_oip::grpc::proto::{
    InferParameter, ModelInferRequest, ModelInferResponse, ModelStreamInferResponse,
};
use gristmill_transport::{Ongoing, Problem, body};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use super::call::{Call, hold_contents};
use super::status::status_of;
use crate::inference::Inference;

/// The parameter that says that no other response to the same request follows.
const FINAL_RESPONSE: &str = "triton_final_response";

impl Inference {
    /// Run a stream's request in a task of its own. The request ends at its deadline and its answer
    /// is counted, whether or not the stream is read. Until then it is `ongoing`.
    pub(super) fn stream_answer(
        self,
        (call, ongoing): (Call, Option<Ongoing>),
        mut message: ModelInferRequest,
        budget: Option<&Arc<ByteBudget>>,
    ) -> impl Future<Output = Result<ModelStreamInferResponse, Status>> + use<> {
        let failed = ModelInferResponse {
            model_name: message.model_name.clone(),
            model_version: message.model_version.clone(),
            id: message.id.clone(),
            ..Default::default()
        };
        let held = budget.map(|budget| budget.hold(0));
        let counted = hold_contents(&mut message, budget);
        let answering = AbortOnDropHandle::new(tokio::spawn(async move {
            let _ongoing = ongoing;
            counted?;
            let answer = self.infer_in(&call, message).await?;
            let bytes = answer.raw_output_contents.iter().map(Bytes::len).sum();
            body::count(held.as_ref(), bytes)?;
            Ok((answer, held))
        }));
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
