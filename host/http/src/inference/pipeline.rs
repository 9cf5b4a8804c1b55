//! A pipeline without named inputs as a model: one text in, one text out.

use bytes::Bytes;
use gristmill_core::{Dtype, ErrorCode, Shape};
use gristmill_oip::{InferRequest, Input, Output, OutputData, PipelineParameters, from_texts};
use gristmill_sandbox::{Request, Response};
use gristmill_serve::edge::{media_type, query};
use gristmill_snapshot::Route;
use gristmill_transport::Problem;

use super::models::{REQUEST, RESPONSE};

/// The request for the pipeline's preprocessor.
///
/// # Errors
/// The inputs are not the one text that a pipeline has, or it is too long.
pub(super) fn plugin_request(route: &Route, request: &InferRequest) -> Result<Request, Problem> {
    let (input, body) = pipeline_body(request)?;
    if body.len() > route.limits.body_bytes {
        let limit = route.limits.body_bytes;
        let detail = format!("{REQUEST} is over the pipeline's limit of {limit} bytes");
        return Err(Problem::new(ErrorCode::BodyTooLarge, detail));
    }
    let PipelineParameters { content_type, query: text } = &input.parameters;
    Ok(Request {
        content_type: content_type.as_deref().map(media_type),
        headers: Vec::new(),
        query: text.as_deref().map(query).unwrap_or_default(),
        body,
        parts: Vec::new(),
    })
}

/// The input `REQUEST` and its only element, which may be any bytes.
fn pipeline_body(request: &InferRequest) -> Result<(&Input, Bytes), Problem> {
    let wrong = |detail: String| Problem::new(ErrorCode::InvalidRequest, detail);
    let [input] = &request.inputs[..] else {
        let detail = format!(
            "{} inputs are given: a pipeline has exactly one, {REQUEST}",
            request.inputs.len()
        );
        return Err(wrong(detail));
    };
    if input.name != REQUEST {
        return Err(wrong(format!(
            "unknown input {:?}: a pipeline has exactly one, {REQUEST}",
            input.name
        )));
    }
    let not_one =
        || wrong(format!("{REQUEST} has shape {:?}, but a pipeline needs [1]", &input.shape[..]));
    // Checked before its elements are read, because there may be many.
    if input.shape.iter().any(|size| *size != 1) {
        return Err(not_one());
    }
    Ok((input, input.texts()?.pop().ok_or_else(not_one)?))
}

/// Answers of the protocol have no status, so an error status becomes an error of the request.
///
/// # Errors
/// The answer has an error status.
pub(super) fn check_status(status: u16, body: &[u8]) -> Result<(), Problem> {
    if status >= 400 {
        let code = match status {
            ..500 => ErrorCode::InvalidRequest,
            _ => ErrorCode::PluginFailed,
        };
        if code == ErrorCode::PluginFailed {
            tracing::warn!(status, "the pipeline answered with an error");
        }
        let text = String::from_utf8_lossy(body);
        let detail = format!("the pipeline answered with status {status}: {text}");
        return Err(Problem::new(code, detail));
    }
    Ok(())
}

/// The pipeline's answer as the output `RESPONSE`.
///
/// # Errors
/// The answer has an error status.
pub(super) fn output_of(response: Response) -> Result<Output, Problem> {
    check_status(response.status, &response.body)?;
    let data = from_texts(&[&response.body]);
    Ok(Output {
        name: RESPONSE.into(),
        datatype: Dtype::String,
        shape: Shape::from_elem(1, 1),
        data: OutputData::Bytes(data.into()),
    })
}
