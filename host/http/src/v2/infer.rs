//! An inference over HTTP: from the request's body to the answer's body.
//!
//! The 14 forms of a request for a model, as JSON or with binary tensors:
//! 1. to 3. those of `plane` up to the decoded `Bytes`;
//! 4. `InferRequest`, its tensors;
//! 5. to 9. `batch::Submission`, and those of its lane as in `plane`, up to `Answered`;
//! 10. `Output`, in a `Ran` (`inference`);
//! 11. `InferResponse`; 12. `Written`, the parts of the body;
//! 13. and 14. an `Answer`, and the `Answering` that is sent.
//!
//! A pipeline has 4. to 13. of `plane` in place of 5. to 9., so 19: this protocol stands around its
//! own.

use bytes::Bytes;
use gristmill_core::{Dtype, ErrorCode};
use gristmill_oip::{InferRequest, InferResponse, Input, Room, Written};
use gristmill_serve::{Caller, LoadedModel, NamedModel, Target};
use gristmill_snapshot::Signature;
use gristmill_transport::body::{self, Answer, ReadPlan, ResponseBody, answer_of};
use gristmill_transport::{Encoding, INLINE_BYTES_MAX, Problem};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::answers::number;
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
    let response = InferResponse { model_name: model.name, model_version: version, outputs };
    let written = written(inference, caller, response, request).await?;
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

/// Write the answer's body. JSON counts while it is written; afterwards the body counts by itself.
async fn written(
    inference: &Inference,
    caller: Caller<'_>,
    response: InferResponse<'_>,
    request: InferRequest,
) -> Result<Written, Problem> {
    let held = caller.budget().map(|budget| budget.hold(0));
    if response.json_bytes(&request) <= INLINE_BYTES_MAX {
        return Ok(response.write(&request, held)?);
    }
    let InferResponse { model_name, model_version, outputs } = response;
    let model = model_name.to_owned();
    let write = move || {
        let response = InferResponse { model_name: &model, model_version, outputs };
        response.write(&request, held)
    };
    Ok(inference.offload().run(caller.name(), write).await??)
}

/// The answer, compressed if the client accepts that and the body is large enough.
async fn encoded_answer(
    inference: &Inference,
    request: &HeaderMap,
    caller: Caller<'_>,
    written: Written,
) -> Result<Answer, Problem> {
    let Written { parts, header_len, held } = written;
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
    let mut answer = answer_of(match caller.budget() {
        Some(budget) => body.held(budget),
        None => body,
    });
    drop(held);
    let headers = answer.headers_mut();
    let content_type = match header_len {
        Some(len) => {
            headers.extend(number(len as u64).map(|len| (HEADER_LENGTH, len)));
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
