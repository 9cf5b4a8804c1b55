//! What can be wrong with a request, or with an answer that is to be written.

use gristmill_core::{ClientError, Dtype, ErrorCode, OverBudget, TensorError};

use crate::limits::DIMENSIONS_MAX;

/// Why a body is not an inference request, or an answer cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("the request's JSON cannot be read: {0}")]
    Json(String),
    #[error(
        "Inference-Header-Content-Length is {header}, the body has {body} bytes: it must be the length of the JSON part"
    )]
    HeaderLength { header: usize, body: usize },
    #[error("input {name:?}: shape {shape:?} is no list of sizes")]
    Shape { name: String, shape: Vec<i64> },
    #[error("input {name:?}: its shape has {count} dimensions, {DIMENSIONS_MAX} are the most")]
    Dimensions { name: String, count: usize },
    #[error("input {name:?}: {why}")]
    Datatype { name: String, why: String },
    #[error("input {name:?} has neither data nor binary_data_size")]
    NoData { name: String },
    #[error("input {name:?} has both data and binary_data_size")]
    TwoData { name: String },
    #[error("input {name:?}: data: {why}")]
    Data { name: String, why: String },
    #[error("input {name:?} is {datatype}, which travels as binary data only")]
    BinaryOnly { name: String, datatype: Dtype },
    #[error(
        "input {name:?}: binary_data_size is {size}, but only {rest} bytes are left of the body"
    )]
    TooShort { name: String, size: u64, rest: usize },
    #[error("{0} bytes follow the last binary tensor")]
    TooLong(usize),
    #[error("input {name:?}: {error}")]
    Tensor {
        name: String,
        #[source]
        error: TensorError,
    },
    #[error(
        "input {name:?}: its elements are {bytes} bytes in memory, {left} are left of the limit of a request"
    )]
    TooLarge { name: String, bytes: usize, left: usize },
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    #[error("input {name:?}: {} elements, shape {shape:?} asks for {expected}", .count)]
    Count { name: String, count: usize, shape: Vec<usize>, expected: usize },
    #[error("a raw body (Inference-Header-Content-Length: 0) is not possible: {0}")]
    Raw(String),
    #[error(
        "shared memory is not supported (input or output {0:?}): a region of the host's memory would be open to every tenant"
    )]
    SharedMemory(String),
    #[error("output {0:?}: classification is not supported: a pipeline's postprocessing does that")]
    Classification(String),
    #[error(
        "output {name:?} has {what}, which JSON cannot hold: ask for binary data (binary_data_output)"
    )]
    NotJson { name: String, what: &'static str },
    #[error("parameter {name:?} is {value}: must be a number, 0 or more")]
    Parameter { name: String, value: String },
    #[error("{inputs} inputs are given and {contents} raw_input_contents")]
    RawContents { inputs: usize, contents: usize },
}

impl ClientError for ParseError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::OverBudget(_) => ErrorCode::TenantBusy,
            Self::TooLarge { .. } => ErrorCode::BodyTooLarge,
            Self::SharedMemory(_) | Self::Classification(_) => ErrorCode::Unsupported,
            _ => ErrorCode::InvalidRequest,
        }
    }
}
