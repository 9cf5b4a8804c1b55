//! An inference over HTTP: from the request's body to the answer's body.
//!
//! The forms of a request for a model: those of `plane` up to the decoded `Bytes`; `InferRequest`;
//! `batch::Submission`, and those of its lane; `Output`, in a `Ran`; `Written`; an `Answer`.
//! Pipelines have those of `/v1` in place of the lane's.

use bytes::Bytes;
use gristmill_core::{Dtype, ErrorCode, HeldBytes};
use gristmill_oip::{InferRequest, InferResponse, Input, Output, Room, Written};
use gristmill_serve::{Caller, LoadedModel, NamedModel, Target};
use gristmill_snapshot::Signature;
use gristmill_transport::body::{self, Answer, ReadPlan, ResponseBody};
use gristmill_transport::{Encoding, INLINE_BYTES_MAX, Problem};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response};

use crate::call::Call;
use crate::inference::{Inference, InferenceCall, Ran, models};

const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// Shorter responses are not worth compressing.
const COMPRESSED_BYTES_MIN: usize = 1 << 10;

/// Bytes around the text of a pipeline's request.
const ENVELOPE_BYTES: usize = 4 << 10;

/// Run a model or a pipeline.
pub(super) async fn infer(
    inference: &Inference,
    caller: Caller<'_>,
    model: NamedModel<'_>,
    mut call: Call<'_>,
) -> Result<Answer, Problem> {
    let budget = &caller.tenant()?.tenant.quota.bytes;
    let target = caller.find(call.snapshot, model)?.served()?;
    let header_len = header_length(&call.head.headers)?;
    let deadline = inference.deadline(call.context.receipt.record().arrived);
    let plan = ReadPlan {
        bytes: bytes_max(inference, &target),
        deadline,
        budget: Some(budget),
        aligned_at: header_len.unwrap_or_default(),
        pool: inference.pool(),
    };
    let body = call.read(inference, plan, caller.name()).await?;
    let Call { head, context, .. } = call;
    let mut request = match header_len {
        Some(0) => {
            let mut request = raw_request(&target, body)?;
            // A tensor of texts is a copy, with each text's length before it.
            let texts = |input: &&mut Input| input.datatype == Dtype::String;
            for input in request.inputs.iter_mut().filter(texts) {
                input.data = body::try_held(std::mem::take(&mut input.data), budget)?;
            }
            request
        }
        header_len => parsed(inference, caller, body, header_len).await?,
    };
    context.receipt.read();
    let sticky = |name: &str| head.headers.get(name).map(HeaderValue::as_bytes);
    let mut asked = InferenceCall { caller, target, deadline, sticky: &sticky, context };
    let Ran { version, outputs } = inference.run(&mut asked, &mut request).await?;
    let done = Done { model: model.name, version, outputs, request };
    let written = written(inference, caller, done).await?;
    encoded_answer(inference, &head.headers, caller, written).await
}

/// The most bytes of a request for this target.
fn bytes_max(inference: &Inference, target: &Target<'_>) -> usize {
    let most = inference.message_bytes_max();
    match target {
        Target::Model(_) => most,
        // JSON may make a text longer, and so does base64.
        Target::Pipeline { route, .. } => {
            let rows = route.signature.as_ref().map_or(1, |_| Signature::ROWS_MAX);
            let row = route.limits.body_bytes.saturating_mul(2).saturating_add(ENVELOPE_BYTES);
            most.min(row.saturating_mul(rows))
        }
    }
}

/// The length of the body's JSON part, if binary tensors follow it.
fn header_length(headers: &HeaderMap) -> Result<Option<usize>, Problem> {
    let Some(value) = headers.get(HEADER_LENGTH) else { return Ok(None) };
    let length = value.to_str().ok().and_then(|text| text.parse().ok());
    let wrong = || {
        let detail =
            format!("Inference-Header-Content-Length is {value:?}: must be a number of bytes");
        Problem::new(ErrorCode::InvalidRequest, detail)
    };
    length.map(Some).ok_or_else(wrong)
}

fn raw_request(target: &Target<'_>, body: Bytes) -> Result<InferRequest, Problem> {
    Ok(match target {
        Target::Model(LoadedModel { served, .. }) => {
            let info = served.lane.info();
            InferRequest::raw(&info.inputs, info.has_open_rows(), body)?
        }
        Target::Pipeline { route, .. } => {
            InferRequest::raw(&models::pipeline_inputs(route), true, body)?
        }
    })
}

/// The request in `body`. Its first `header_len` bytes are JSON. Without a length, all of it is
/// JSON.
async fn parsed(
    inference: &Inference,
    caller: Caller<'_>,
    body: Bytes,
    header_len: Option<usize>,
) -> Result<InferRequest, Problem> {
    let most = inference.message_bytes_max();
    if header_len.unwrap_or(body.len()) <= INLINE_BYTES_MAX {
        let room = Room::new(caller.budget(), most);
        return Ok(InferRequest::parse(&body, header_len, &room)?);
    }
    let budget = caller.budget().cloned();
    let parse = move || {
        let room = Room::new(budget.as_ref(), most);
        InferRequest::parse(&body, header_len, &room)
    };
    Ok(inference.offload().run(caller.name(), parse).await??)
}

/// The outputs of a request, before its answer is written.
struct Done<'a> {
    /// The model's name, as the request gave it.
    model: &'a str,
    version: u64,
    outputs: Vec<Output>,
    request: InferRequest,
}

/// An answer that was written, and the bytes of the budget that its JSON holds.
struct Counted {
    written: Written,
    held: Option<HeldBytes>,
}

/// Write the answer's body. JSON counts while it is written; afterwards the body counts by itself.
async fn written(
    inference: &Inference,
    caller: Caller<'_>,
    done: Done<'_>,
) -> Result<Counted, Problem> {
    let held = caller.budget().map(|budget| budget.hold(0));
    let Done { model, version, outputs, request } = done;
    let id = request.id.as_deref();
    let response = InferResponse { model_name: model, model_version: version, id, outputs };
    if response.json_bytes(&request) <= INLINE_BYTES_MAX {
        let written = response.write(&request, held.as_ref())?;
        return Ok(Counted { written, held });
    }
    let (model, outputs) = (model.to_owned(), response.outputs);
    let write = move || {
        let id = request.id.as_deref();
        let response = InferResponse { model_name: &model, model_version: version, id, outputs };
        let written = response.write(&request, held.as_ref())?;
        Ok::<_, Problem>(Counted { written, held })
    };
    inference.offload().run(caller.name(), write).await?
}

/// The answer, compressed if the client accepts that and the body is large enough.
async fn encoded_answer(
    inference: &Inference,
    request: &HeaderMap,
    caller: Caller<'_>,
    counted: Counted,
) -> Result<Answer, Problem> {
    let Counted { written: Written { parts, header_len }, held } = counted;
    let len: usize = parts.iter().map(Bytes::len).sum();
    let is_worth_it = len >= COMPRESSED_BYTES_MIN;
    let encoding = is_worth_it.then(|| Encoding::accepted(request)).flatten();
    let body = match encoding {
        None => ResponseBody::from(parts),
        Some(encoding) => {
            let compressed = if len <= INLINE_BYTES_MAX {
                encoding.compress(parts)
            } else {
                let compress = move || encoding.compress(parts);
                inference.offload().run(caller.name(), compress).await?
            };
            let failed =
                |error: std::io::Error| Problem::new(ErrorCode::Internal, error.to_string());
            ResponseBody::from(Bytes::from(compressed.map_err(failed)?))
        }
    };
    let mut answer = Response::new(match caller.budget() {
        Some(budget) => body.held(budget),
        None => body,
    });
    drop(held);
    let headers = answer.headers_mut();
    let content_type = match header_len {
        Some(len) => {
            headers.insert(HEADER_LENGTH, len.into());
            "application/octet-stream"
        }
        None => "application/json",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(encoding) = encoding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.as_str()));
    }
    Ok(answer)
}
