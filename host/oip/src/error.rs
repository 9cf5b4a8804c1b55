//! Errors of reading a request and of writing an answer.

use gristmill_core::{ClientError, Dtype, ErrorCode, OverBudget, TensorError};

use crate::limits::DIMENSIONS_MAX;

/// The reason why a request cannot be read, or an answer cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The JSON part is not JSON, or not a request; holds the text of the JSON reader's error.
    #[error("the request's JSON cannot be read: {0}")]
    Json(String),
    /// The header gives the JSON part a length that is longer than the body.
    #[error(
        "Inference-Header-Content-Length is {header}, the body has {body} bytes: it must be the \
         length of the JSON part"
    )]
    HeaderLength {
        /// The length of the JSON part that the header gives, in bytes.
        header: usize,
        /// The length of the body, in bytes.
        body: usize,
    },
    /// A shape with a negative size.
    #[error("input {name:?}: shape {shape:?} is not a list of sizes")]
    Shape {
        /// The input.
        name: String,
        /// Its shape.
        shape: Vec<i128>,
    },
    /// A shape with too many dimensions.
    #[error("input {name:?}: its shape has {count} dimensions: the limit is {DIMENSIONS_MAX}")]
    Dimensions {
        /// The input.
        name: String,
        /// The number of its dimensions.
        count: usize,
    },
    /// An unknown element type, or another one than is needed.
    #[error("input {name:?}: {why}")]
    Datatype {
        /// The input.
        name: String,
        /// The fault of its datatype.
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
    /// Elements of another type than the input's, or more or fewer than the shape needs.
    #[error("input {name:?}: data: {why}")]
    Data {
        /// The input.
        name: String,
        /// The fault of its elements.
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
    /// A binary tensor that is longer than the rest of the body.
    #[error(
        "input {name:?}: binary_data_size is {size}, but only {rest} bytes are left of the body"
    )]
    TooShort {
        /// The input.
        name: String,
        /// The length that the request gives it, in bytes.
        size: u64,
        /// The bytes that are left of the body.
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
        /// The fault of its bytes.
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
        /// The bytes that its elements take.
        bytes: usize,
        /// The bytes that are left of the request's limit.
        left: usize,
    },
    /// The tenant's budget has no room for the elements.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// Another number of elements than the shape needs.
    #[error("input {name:?}: {} elements, but shape {shape:?} needs {expected}", .count)]
    Count {
        /// The input.
        name: String,
        /// The number of its elements.
        count: usize,
        /// Its shape.
        shape: Vec<usize>,
        /// The number of elements that the shape needs.
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
    /// A request for the classes of an output that has none.
    #[error(
        "output {name:?} has no classes: its elements are {datatype}, and not integers, FP32 or FP64"
    )]
    NoClasses {
        /// The output.
        name: String,
        /// Its element type.
        datatype: Dtype,
    },
    /// An output that JSON cannot hold.
    #[error(
        "output {name:?} has {what}, which JSON cannot hold: ask for binary data \
         (binary_data_output)"
    )]
    NotJson {
        /// The output.
        name: String,
        /// The content that JSON cannot hold.
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
    /// A parameter that must be a text.
    #[error("parameter {name:?} is {value}: must be a text")]
    TextParameter {
        /// The parameter.
        name: String,
        /// Its value.
        value: String,
    },
    /// Another number of raw contents than of inputs.
    #[error("{inputs} inputs are given and {contents} raw_input_contents")]
    RawContents {
        /// The number of the request's inputs.
        inputs: usize,
        /// The number of its raw contents.
        contents: usize,
    },
}

impl ClientError for ParseError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::OverBudget(_) => ErrorCode::TenantBusy,
            Self::TooLarge { .. } => ErrorCode::BodyTooLarge,
            Self::SharedMemory(_) => ErrorCode::Unsupported,
            _ => ErrorCode::InvalidRequest,
        }
    }
}
