//! Why bytes cannot be read as a request, or an answer cannot be written.

use gristmill_core::{ClientError, Dtype, ErrorCode, OverBudget, TensorError};

use crate::limits::DIMENSIONS_MAX;

/// Why a body is not an inference request, or an answer cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The JSON part is not JSON, or not a request; holds the JSON reader's words.
    #[error("the request's JSON cannot be read: {0}")]
    Json(String),
    /// The JSON part is said to be longer than the body.
    #[error(
        "Inference-Header-Content-Length is {header}, the body has {body} bytes: it must be the \
         length of the JSON part"
    )]
    HeaderLength {
        /// Bytes that the JSON part is said to have.
        header: usize,
        /// Bytes of the body.
        body: usize,
    },
    /// A negative size.
    #[error("input {name:?}: shape {shape:?} is not a list of sizes")]
    Shape {
        /// The input.
        name: String,
        /// Its shape.
        shape: Vec<i64>,
    },
    /// More dimensions than are read.
    #[error("input {name:?}: its shape has {count} dimensions: the limit is {DIMENSIONS_MAX}")]
    Dimensions {
        /// The input.
        name: String,
        /// Its dimensions.
        count: usize,
    },
    /// An element type that does not exist, or not the one that is wanted.
    #[error("input {name:?}: {why}")]
    Datatype {
        /// The input.
        name: String,
        /// What is wrong with its datatype.
        why: String,
    },
    /// Neither JSON nor binary elements.
    #[error("input {name:?} has neither data nor binary_data_size")]
    NoData {
        /// The input.
        name: String,
    },
    /// Both JSON and binary elements.
    #[error("input {name:?} has both data and binary_data_size")]
    TwoData {
        /// The input.
        name: String,
    },
    /// Elements that are not of the element type or not as many as the shape asks for.
    #[error("input {name:?}: data: {why}")]
    Data {
        /// The input.
        name: String,
        /// What is wrong with its elements.
        why: String,
    },
    /// An element type that JSON cannot hold.
    #[error("input {name:?} is {datatype}, which can be sent as binary data only")]
    BinaryOnly {
        /// The input.
        name: String,
        /// Its element type.
        datatype: Dtype,
    },
    /// Fewer bytes than a binary tensor is said to have.
    #[error(
        "input {name:?}: binary_data_size is {size}, but only {rest} bytes are left of the body"
    )]
    TooShort {
        /// The input.
        name: String,
        /// Bytes that it is said to have.
        size: u64,
        /// Bytes that are left of the body.
        rest: usize,
    },
    /// Bytes that belong to no tensor.
    #[error("{0} bytes follow the last binary tensor")]
    TooLong(usize),
    /// Bytes that are not a tensor of the datatype and shape.
    #[error("input {name:?}: {error}")]
    Tensor {
        /// The input.
        name: String,
        /// What is wrong with its bytes.
        #[source]
        error: TensorError,
    },
    /// Elements that take more memory than a request may.
    #[error(
        "input {name:?}: its elements need {bytes} bytes of memory, but only {left} are left of \
         the request's limit"
    )]
    TooLarge {
        /// The input.
        name: String,
        /// Bytes that its elements take.
        bytes: usize,
        /// Bytes that are left of the request's limit.
        left: usize,
    },
    /// The tenant's budget has no room for the elements.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// Another number of texts than the shape asks for.
    #[error("input {name:?}: {} elements, but shape {shape:?} needs {expected}", .count)]
    Count {
        /// The input.
        name: String,
        /// Its texts.
        count: usize,
        /// Its shape.
        shape: Vec<usize>,
        /// Texts that the shape asks for.
        expected: usize,
    },
    /// A raw body for a model that does not take one.
    #[error("a raw body (Inference-Header-Content-Length: 0) is not possible: {0}")]
    Raw(String),
    /// A tensor in shared memory.
    #[error(
        "shared memory is not supported (input or output {0:?}): a region of the host's memory \
         would be open to every tenant"
    )]
    SharedMemory(String),
    /// An output that is to be classified.
    #[error("output {0:?}: classification is not supported: a pipeline's postprocessing does that")]
    Classification(String),
    /// An output that JSON cannot hold.
    #[error(
        "output {name:?} has {what}, which JSON cannot hold: ask for binary data \
         (binary_data_output)"
    )]
    NotJson {
        /// The output.
        name: String,
        /// What it has.
        what: &'static str,
    },
    /// A parameter that must be a number.
    #[error("parameter {name:?} is {value}: must be a number, 0 or more")]
    Parameter {
        /// The parameter.
        name: String,
        /// Its value.
        value: String,
    },
    /// Another number of raw contents than of inputs.
    #[error("{inputs} inputs are given and {contents} raw_input_contents")]
    RawContents {
        /// The request's inputs.
        inputs: usize,
        /// Its raw contents.
        contents: usize,
    },
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
