//! One call: who makes it, when it is over, and running a model for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{Deadline, Digest};
use gristmill_oip::{InferRequest, Room};
use gristmill_snapshot::Snapshot;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use super::messages::{number, output_of, requested_output, tensors, typed_bytes};
use super::status::{status_of, timeout};
use crate::offload::INLINE_BYTES_MAX;
use crate::oip::Inference;
use crate::oip::access::{Caller, Target, Visible};
use crate::oip::inference::{Answered, Asked};
use crate::oip::proto::{ModelInferRequest, ModelInferResponse, ModelRepositoryParameter};
use crate::problem::Problem;

/// A call whose caller is known: found once, it goes with the call as one of its extensions, so
/// that all of the call sees one snapshot.
#[derive(Clone)]
pub(super) struct Admitted {
    pub(super) snapshot: Arc<Snapshot>,
    /// When the call began.
    pub(super) arrived: Instant,
    /// Its key's digest.
    pub(super) key: Option<Digest>,
}

/// A request of a call.
pub(super) struct Call {
    pub(super) admitted: Admitted,
    arrived: Instant,
    deadline: Deadline,
}

/// Who makes the call.
pub(super) fn admitted<T>(request: &Request<T>) -> Result<&Admitted, Status> {
    let admitted = request.extensions().get::<Admitted>();
    admitted.ok_or_else(|| Status::internal("the call was not admitted"))
}

/// How long the client gives the call.
pub(super) fn own_timeout(metadata: &MetadataMap) -> Option<Duration> {
    timeout(metadata.get("grpc-timeout")?.to_str().ok()?)
}

impl Inference {
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.parts.control.cell().load()
    }

    /// The caller of an admitted call.
    pub(super) fn admitted<'a>(&self, admitted: &'a Admitted) -> Result<Caller<'a>, Problem> {
        self.caller_with(&admitted.snapshot, admitted.key)
    }

    /// A request that came at `arrived`, in a call whose client waits for it until `own`.
    pub(super) fn call(&self, admitted: Admitted, arrived: Instant, own: Option<Instant>) -> Call {
        let deadline = self.deadline(arrived);
        let deadline = own.map_or(deadline, |own| deadline.min(Deadline::at(own)));
        Call { admitted, arrived, deadline }
    }

    /// Answer a request whose contents count.
    pub(super) async fn infer_in(
        &self,
        call: &Call,
        message: ModelInferRequest,
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
            arrived: call.arrived,
            deadline: call.deadline,
        };
        let target = self.target(&call.admitted.snapshot, &asked)?;
        let outputs = outputs.into_iter().map(requested_output);
        let most = self.parts.config.message_bytes_max;
        let inputs = if typed_bytes(&inputs) <= INLINE_BYTES_MAX {
            tensors(inputs, raw_input_contents, &Room::new(caller.budget(), most))?
        } else {
            let budget = caller.budget().cloned();
            let make =
                move || tensors(inputs, raw_input_contents, &Room::new(budget.as_ref(), most));
            self.parts.offload.run(caller.name(), make).await??
        };
        let mut request = InferRequest {
            id: None,
            inputs,
            outputs: outputs.collect::<Result<_, _>>()?,
            binary_output: true,
            priority: number(&parameters, "priority")?
                .unwrap_or_default()
                .try_into()
                .unwrap_or(u32::MAX),
            timeout: number(&parameters, "timeout")?
                .filter(|us| *us > 0)
                .map(Duration::from_micros),
        };
        let Answered { version, outputs, .. } = self.run(&asked, &target, &mut request).await?;
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

    /// What `tell` says of a model, by its name and version, that the caller may see.
    pub(super) fn tell<T, R>(
        &self,
        request: &Request<R>,
        (name, version): (&str, &str),
        tell: impl FnOnce(Caller<'_>, Visible<'_>, &Target<'_>) -> T,
    ) -> Result<T, Status> {
        let admitted = admitted(request)?;
        let told = self.admitted(admitted).and_then(|caller| {
            let visible = caller.find(&admitted.snapshot, name, version)?;
            Ok(tell(caller, visible, &visible.served()?))
        });
        told.map_err(|problem| status_of(&problem))
    }

    pub(super) async fn change_model(
        &self,
        admitted: &Admitted,
        (model, load): (&str, bool),
        parameters: &HashMap<String, ModelRepositoryParameter>,
    ) -> Result<(), Status> {
        let change = async {
            let caller = self.admitted(admitted)?;
            self.set_loaded(caller, model, load, parameters.keys().map(String::as_str)).await
        };
        change.await.map_err(|problem| status_of(&problem))
    }
}
