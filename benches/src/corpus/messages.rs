//! Messages of the Open Inference Protocol of 40 to 60 MB. A careless parser would need many times
//! that memory for them. All ask for the model `ranker`.

use super::protobuf::Message;

/// The model that they name.
pub const MODEL: &str = "ranker";

/// JSON: an input of 20 million dimensions.
pub fn json_shape() -> Vec<u8> {
    const DIMS: usize = 20_000_000;
    let begin = br#"{"inputs":[{"name":"input","datatype":"FP32","data":[1],"shape":[1"#;
    [begin, ",1".repeat(DIMS - 1).as_bytes(), b"]}]}"].concat()
}

/// JSON: 4 million outputs asked for.
pub fn json_outputs() -> Vec<u8> {
    const OUTPUTS: usize = 4_000_000;
    let begin = br#"{"inputs":[{"name":"input","datatype":"FP32","shape":[1,1],"data":[1]}],"outputs":[{"name":"o"}"#;
    [begin, r#",{"name":"o"}"#.repeat(OUTPUTS - 1).as_bytes(), b"]}"].concat()
}

/// JSON: a million inputs.
pub fn json_inputs() -> Vec<u8> {
    const INPUTS: usize = 1_000_000;
    let input = r#"{"name":"i","datatype":"FP32","shape":[1],"data":[1]}"#;
    let inputs = format!(",{input}").repeat(INPUTS - 1);
    [br#"{"inputs":["#, input.as_bytes(), inputs.as_bytes(), b"]}"].concat()
}

/// Fields of `ModelInferRequest`, `InferInputTensor` and `InferTensorContents`.
mod fields {
    pub(super) const MODEL_NAME: u64 = 1;
    pub(super) const INPUTS: u64 = 5;
    pub(super) const OUTPUTS: u64 = 6;
    pub(super) const NAME: u64 = 1;
    pub(super) const DATATYPE: u64 = 2;
    pub(super) const SHAPE: u64 = 3;
    pub(super) const CONTENTS: u64 = 5;
    pub(super) const INT64_CONTENTS: u64 = 3;
    pub(super) const RAW_INPUT_CONTENTS: u64 = 7;
}

fn grpc_request() -> Message {
    Message::new().text(fields::MODEL_NAME, MODEL)
}

fn grpc_input(datatype: &str) -> Message {
    Message::new().text(fields::NAME, "input").text(fields::DATATYPE, datatype)
}

/// gRPC: an input of 40 million dimensions of one byte each.
pub fn grpc_shape() -> Vec<u8> {
    let input = grpc_input("FP32").bytes(fields::SHAPE, &vec![1; 40_000_000]);
    grpc_request().message(fields::INPUTS, input).into_bytes()
}

/// gRPC: 50 million integers of one byte each.
pub fn grpc_integers() -> Vec<u8> {
    let contents = Message::new().bytes(fields::INT64_CONTENTS, &vec![1; 50_000_000]);
    let input = grpc_input("INT64").bytes(fields::SHAPE, &[1, 1]);
    let input = input.message(fields::CONTENTS, contents);
    grpc_request().message(fields::INPUTS, input).into_bytes()
}

/// gRPC: 4 million outputs asked for.
pub fn grpc_outputs() -> Vec<u8> {
    let output = Message::new().text(fields::NAME, "o");
    let input = grpc_input("FP32").bytes(fields::SHAPE, &[1, 1]);
    let request = grpc_request().message(fields::INPUTS, input);
    repeated(request, fields::OUTPUTS, &output, 4_000_000)
}

/// gRPC: 4 million parts of raw contents, each empty.
pub fn grpc_parts() -> Vec<u8> {
    repeated(grpc_request(), fields::RAW_INPUT_CONTENTS, &Message::new(), 4_000_000)
}

fn repeated(message: Message, field: u64, element: &Message, count: usize) -> Vec<u8> {
    let element = Message::new().message(field, element.clone()).into_bytes();
    [message.into_bytes(), element.repeat(count)].concat()
}
