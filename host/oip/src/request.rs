//! An inference request: from the body's bytes to names, shapes and elements.

use std::time::Duration;

use bytes::Bytes;
use gristmill_core::{Dtype, Shape, TensorInfo};

use crate::bounded::Text;
use crate::elements;
use crate::error::ParseError;
use crate::input::{Input, PipelineParameters};
use crate::json::unreadable;
use crate::object::{Object, Whole};
use crate::room::Room;
use crate::unsupported::no_shared_memory;
use crate::wire::{WireOutput, WireOutputParameters, WireParameters, WireRequest};

/// A request to run a model.
#[derive(Debug, Default)]
pub struct InferRequest {
    /// The client's id of the request. The answer repeats it.
    pub id: Option<String>,
    /// In the body's order.
    pub inputs: Vec<Input>,
    /// The requested outputs. Empty if all outputs are wanted.
    pub outputs: Vec<RequestedOutput>,
    /// Whether outputs are sent as binary data, unless [`RequestedOutput::binary`] says otherwise.
    pub binary_output: bool,
    /// The priority level. 0 stands for the model's default.
    pub priority: u32,
    /// The longest time in the queue.
    pub timeout: Option<Duration>,
}

/// An output that a request asks for.
#[derive(Debug)]
pub struct RequestedOutput {
    /// The model's name for it.
    pub name: String,
    /// Whether it is sent as binary data. If none, [`InferRequest::binary_output`] applies.
    pub binary: Option<bool>,
    /// The number of classes that are wanted of each row. 0 stands for the output itself.
    pub classes: usize,
}

impl InferRequest {
    /// Read `body`: JSON of `header_len` bytes, and then the binary tensors in the JSON's order.
    /// Without a length, all of the body is JSON. The memory for tensors that are sent as JSON is
    /// taken from `room`.
    ///
    /// # Errors
    /// [`ParseError`] names the input or output and what is wrong with it.
    pub fn parse(
        body: &Bytes,
        header_len: Option<usize>,
        room: &Room<'_>,
    ) -> Result<Self, ParseError> {
        let header = match header_len {
            None => &body[..],
            Some(len) => body
                .get(..len)
                .ok_or_else(|| ParseError::HeaderLength { header: len, body: body.len() })?,
        };
        let Object(wire): Object<WireRequest<'_>> =
            serde_json::from_slice(header).map_err(|error| unreadable(header, &error))?;
        let mut binary = body.slice(header.len()..);
        let mut inputs = Vec::with_capacity(wire.inputs.0.len());
        for Object(input) in wire.inputs.0 {
            inputs.push(Input::from_wire(input, &mut binary, room)?);
        }
        if !binary.is_empty() {
            return Err(ParseError::TooLong(binary.len()));
        }
        let outputs = wire.outputs.map_or_else(Vec::new, |outputs| outputs.0).into_iter();
        let outputs = outputs.map(|Object(output)| RequestedOutput::from_wire(output));
        let outputs = outputs.collect::<Result<_, _>>()?;
        let Object(WireParameters { priority, timeout, binary_data_output }) =
            wire.parameters.unwrap_or_default();
        let number =
            |number: Option<Whole>, name| number.map_or(Ok(0), |number| number.parameter(name));
        Ok(Self {
            id: wire.id.map(Text::into_string),
            inputs,
            outputs,
            binary_output: binary_data_output,
            priority: number(priority, "priority")?.try_into().unwrap_or(u32::MAX),
            timeout: Some(number(timeout, "timeout")?)
                .filter(|us| *us > 0)
                .map(Duration::from_micros),
        })
    }

    /// A body that is one raw tensor: the model's only input. If the number of rows is not fixed,
    /// it is one row. All outputs are sent as binary data.
    ///
    /// # Errors
    /// [`ParseError::Raw`] if the model does not have exactly one input, or the bytes are not one
    /// row.
    pub fn raw(
        inputs: &[TensorInfo],
        rows_are_open: bool,
        body: Bytes,
    ) -> Result<Self, ParseError> {
        let [info] = inputs else {
            return Err(ParseError::Raw(format!("the model has {} inputs", inputs.len())));
        };
        let (shape, data) = if info.dtype == Dtype::String {
            let mut shape = Shape::from_elem(1, info.dims.len().max(1));
            shape.truncate(info.dims.len());
            (shape, elements::from_texts(&[&body]).into())
        } else {
            (raw_shape(info, rows_are_open, body.len())?, body)
        };
        let (name, parameters) = (info.name.to_string(), PipelineParameters::default());
        let input = Input { name, datatype: info.dtype, shape, data, parameters };
        Ok(Self { inputs: vec![input], binary_output: true, ..Self::default() })
    }
}

/// The shape of one row in `len` bytes.
fn raw_shape(info: &TensorInfo, rows_are_open: bool, len: usize) -> Result<Shape, ParseError> {
    let mut dims: Vec<Option<usize>> = info.dims.clone();
    if let Some(rows) = dims.first_mut().filter(|_| rows_are_open) {
        *rows = Some(1);
    }
    if dims.iter().filter(|dim| dim.is_none()).count() > 1 {
        let why = format!("input {:?} has more than one variable dimension", info.name);
        return Err(ParseError::Raw(why));
    }
    let product = dims.iter().flatten().try_fold(1_usize, |product, dim| product.checked_mul(*dim));
    let row_bytes =
        product.zip(info.dtype.size_bytes()).and_then(|(count, size)| count.checked_mul(size));
    let fits = row_bytes.filter(|bytes| *bytes > 0 && len.is_multiple_of(*bytes));
    let Some(row_bytes) = fits else {
        let why = format!("{len} bytes are not a {} of shape {}", info.dtype, info.shape_text());
        return Err(ParseError::Raw(why));
    };
    Ok(dims.into_iter().map(|dim| dim.unwrap_or(len / row_bytes)).collect())
}

impl RequestedOutput {
    fn from_wire(wire: WireOutput<'_>) -> Result<Self, ParseError> {
        let Object(WireOutputParameters { binary_data, classification, shared_memory_region }) =
            wire.parameters.unwrap_or_default();
        let name = wire.name.into_string();
        no_shared_memory(&name, shared_memory_region.is_some())?;
        let classes = match classification {
            Some(count) => count.parameter("classification")?,
            None => 0,
        };
        let classes = classes.try_into().unwrap_or(usize::MAX);
        Ok(Self { name, binary: binary_data, classes })
    }
}
