//! Reading an inference request's body.

use std::time::Duration;

use bytes::Bytes;
use gristmill_core::{BufferPool, Dtype, Shape, Tensor, TensorError, TensorInfo};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::bounded::{List, Part, Text, cut};
use crate::elements;
use crate::error::ParseError;
use crate::limits::{DIMENSIONS_MAX, TENSORS_MAX};
use crate::room::Room;

/// A request to run a model.
#[derive(Debug, Default)]
pub struct InferRequest {
    /// The client's word for it; comes back with the answer.
    pub id: Option<String>,
    /// In the body's order.
    pub inputs: Vec<Input>,
    /// The outputs asked for; empty: all.
    pub outputs: Vec<RequestedOutput>,
    /// Whether outputs that do not say otherwise come back binary.
    pub binary_output: bool,
    /// Priority level; 0: the model's default.
    pub priority: u32,
    /// How long it may be queued.
    pub timeout: Option<Duration>,
}

/// An input tensor.
#[derive(Clone, Debug)]
pub struct Input {
    pub name: String,
    pub datatype: Dtype,
    pub shape: Shape,
    /// Little-endian elements, as a binary tensor has them.
    pub data: Bytes,
}

/// An output that a request asks for.
#[derive(Debug)]
pub struct RequestedOutput {
    pub name: String,
    /// Whether it comes back binary; none: as the request says.
    pub binary: Option<bool>,
}

#[derive(Deserialize)]
struct WireRequest<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(default)]
    parameters: Option<WireParameters>,
    #[serde(borrow)]
    inputs: List<WireInput<'a>>,
    #[serde(borrow, default)]
    outputs: Option<List<WireOutput<'a>>>,
}

#[derive(Default, Deserialize)]
struct WireParameters {
    priority: Option<u32>,
    /// Microseconds.
    timeout: Option<u64>,
    #[serde(default)]
    binary_data_output: bool,
}

#[derive(Deserialize)]
struct WireInput<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    datatype: Text<'a>,
    shape: List<i64>,
    #[serde(default)]
    parameters: Option<WireInputParameters>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

impl Part for WireInput<'_> {
    const MAX: usize = TENSORS_MAX;
    const WHAT: &'static str = "inputs";
}

impl Part for i64 {
    const MAX: usize = DIMENSIONS_MAX;
    const WHAT: &'static str = "dimensions";
}

#[derive(Default, Deserialize)]
struct WireInputParameters {
    binary_data_size: Option<u64>,
    shared_memory_region: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct WireOutput<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(default)]
    parameters: Option<WireOutputParameters>,
}

impl Part for WireOutput<'_> {
    const MAX: usize = TENSORS_MAX;
    const WHAT: &'static str = "outputs";
}

#[derive(Default, Deserialize)]
struct WireOutputParameters {
    binary_data: Option<bool>,
    classification: Option<i64>,
    shared_memory_region: Option<serde::de::IgnoredAny>,
}

impl InferRequest {
    /// Read `body`: JSON of `header_len` bytes, then the binary tensors in the JSON's order; all of it is
    /// JSON where no length is given. What tensors of JSON take in memory is taken from `room`.
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
        let wire: WireRequest<'_> =
            serde_json::from_slice(header).map_err(|error| ParseError::Json(cut(&error)))?;
        let mut binary = body.slice(header.len()..);
        let mut inputs = Vec::with_capacity(wire.inputs.0.len());
        for input in wire.inputs.0 {
            inputs.push(Input::from_wire(input, &mut binary, room)?);
        }
        if !binary.is_empty() {
            return Err(ParseError::TooLong(binary.len()));
        }
        let outputs = wire.outputs.map_or_else(Vec::new, |outputs| outputs.0).into_iter();
        let outputs = outputs.map(RequestedOutput::from_wire).collect::<Result<_, _>>()?;
        let WireParameters { priority, timeout, binary_data_output } =
            wire.parameters.unwrap_or_default();
        Ok(Self {
            id: wire.id.map(Text::into_string),
            inputs,
            outputs,
            binary_output: binary_data_output,
            priority: priority.unwrap_or_default(),
            timeout: timeout.filter(|us| *us > 0).map(Duration::from_micros),
        })
    }

    /// A body that is one raw tensor: the model's only input, one row of it where rows are free; all outputs
    /// come back binary.
    pub fn raw(
        inputs: &[TensorInfo],
        rows_are_dynamic: bool,
        body: Bytes,
    ) -> Result<Self, ParseError> {
        let [info] = inputs else {
            return Err(ParseError::Raw(format!("the model has {} inputs", inputs.len())));
        };
        let input = if info.dtype == Dtype::String {
            let mut shape = Shape::from_elem(1, info.dims.len().max(1));
            shape.truncate(info.dims.len());
            let data = elements::from_texts(&[&body]).into();
            Input { name: info.name.to_string(), datatype: info.dtype, shape, data }
        } else {
            let shape = raw_shape(info, rows_are_dynamic, body.len())?;
            Input { name: info.name.to_string(), datatype: info.dtype, shape, data: body }
        };
        Ok(Self { inputs: vec![input], binary_output: true, ..Self::default() })
    }
}

/// The shape of one row in `len` bytes.
fn raw_shape(info: &TensorInfo, rows_are_dynamic: bool, len: usize) -> Result<Shape, ParseError> {
    let mut dims: Vec<Option<usize>> = info.dims.clone();
    if let Some(rows) = dims.first_mut().filter(|_| rows_are_dynamic) {
        *rows = Some(1);
    }
    if dims.iter().filter(|dim| dim.is_none()).count() > 1 {
        let why = format!("input {:?} has more than one variable dimension", info.name);
        return Err(ParseError::Raw(why));
    }
    let known = dims.iter().flatten().try_fold(1_usize, |product, dim| product.checked_mul(*dim));
    let row_bytes =
        known.zip(info.dtype.size_bytes()).and_then(|(count, size)| count.checked_mul(size));
    let fits = row_bytes.filter(|bytes| *bytes > 0 && len.is_multiple_of(*bytes));
    let Some(row_bytes) = fits else {
        let why = format!("{len} bytes are no {} of shape {}", info.dtype, info.shape_text());
        return Err(ParseError::Raw(why));
    };
    Ok(dims.into_iter().map(|dim| dim.unwrap_or(len / row_bytes)).collect())
}

impl Input {
    fn from_wire(
        wire: WireInput<'_>,
        binary: &mut Bytes,
        room: &Room<'_>,
    ) -> Result<Self, ParseError> {
        let name = wire.name.into_string();
        let (datatype, shape) = Self::described(&name, wire.datatype.as_str(), wire.shape.0)?;
        let parameters = wire.parameters.unwrap_or_default();
        no_shared_memory(&name, parameters.shared_memory_region.is_some())?;
        let data = match (parameters.binary_data_size, wire.data) {
            (Some(_), Some(_)) => return Err(ParseError::TwoData { name }),
            (None, None) => return Err(ParseError::NoData { name }),
            (None, Some(data)) => elements::read(
                &elements::Asked { name: &name, datatype, shape: &shape },
                data,
                room,
            )?,
            (Some(size), None) => {
                if size > binary.len() as u64 {
                    return Err(ParseError::TooShort { name, size, rest: binary.len() });
                }
                binary.split_to(size as usize)
            }
        };
        Ok(Self { name, datatype, shape, data })
    }

    /// What an input's datatype and shape say, as either protocol has them.
    pub fn described(
        name: &str,
        datatype: &str,
        shape: Vec<i64>,
    ) -> Result<(Dtype, Shape), ParseError> {
        let name = || name.to_owned();
        if shape.len() > DIMENSIONS_MAX {
            return Err(ParseError::Dimensions { name: name(), count: shape.len() });
        }
        let datatype = datatype
            .parse::<Dtype>()
            .map_err(|error| ParseError::Datatype { name: name(), why: error.to_string() })?;
        let sizes = shape.iter().map(|size| usize::try_from(*size).ok());
        match sizes.collect::<Option<Shape>>() {
            Some(sizes) => Ok((datatype, sizes)),
            None => Err(ParseError::Shape { name: name(), shape }),
        }
    }

    /// Whether its tensor can be where its bytes lie.
    pub fn is_aligned(&self) -> bool {
        let size = self.datatype.size_bytes().unwrap_or(1);
        self.data.is_empty() || (self.data.as_ptr() as usize).is_multiple_of(size)
    }

    /// What a backend holds beside its bytes while it runs ([`Tensor::run_bytes`]).
    pub fn run_bytes(&self) -> usize {
        Tensor::run_bytes(self.datatype, &self.shape, self.data.len())
    }

    /// Whether making its tensor takes time in proportion to its bytes: they are copied, or looked at.
    pub fn takes_work(&self) -> bool {
        matches!(self.datatype, Dtype::Bool | Dtype::String) || !self.is_aligned()
    }

    /// The tensor: where it lies, if it is aligned there, else a copy.
    pub fn tensor(&self, pool: &BufferPool) -> Result<Tensor, ParseError> {
        let failed = |error| ParseError::Tensor { name: self.name.clone(), error };
        let size = Tensor::size_bytes(self.datatype, &self.shape).map_err(failed)?;
        if let Some(expected) = size.filter(|size| *size != self.data.len()) {
            let error = TensorError::Length { expected, actual: self.data.len() };
            return Err(failed(error));
        }
        let buffer = match &self.data[..] {
            // Wherever nothing lies, it need not be aligned there.
            [] => pool.copy_from(&[]),
            _ => pool.adopt(self.data.clone(), self.datatype.size_bytes().unwrap_or(1)),
        };
        Tensor::new(self.datatype, self.shape.clone(), buffer).map_err(failed)
    }

    /// The elements of a BYTES tensor, which here may be any bytes.
    pub fn texts(&self) -> Result<Vec<Bytes>, ParseError> {
        let name = || self.name.clone();
        if self.datatype != Dtype::String {
            let why = format!("{} is given, BYTES is wanted", self.datatype);
            return Err(ParseError::Datatype { name: name(), why });
        }
        let expected =
            self.shape.iter().try_fold(1_usize, |product, dim| product.checked_mul(*dim));
        let miscounted = |count| ParseError::Count {
            name: name(),
            count,
            shape: self.shape.to_vec(),
            expected: expected.unwrap_or(usize::MAX),
        };
        let mut rest = self.data.clone();
        let mut texts = Vec::new();
        while let Some(len) = rest.first_chunk::<4>() {
            if expected == Some(texts.len()) {
                return Err(miscounted(texts.len() + 1));
            }
            let len = u32::from_le_bytes(*len) as usize;
            if len > rest.len() - 4 {
                let why = format!("element {} is cut short", texts.len());
                return Err(ParseError::Data { name: name(), why });
            }
            drop(rest.split_to(4));
            texts.push(rest.split_to(len));
        }
        if !rest.is_empty() || expected != Some(texts.len()) {
            return Err(miscounted(texts.len()));
        }
        Ok(texts)
    }
}

impl RequestedOutput {
    fn from_wire(wire: WireOutput<'_>) -> Result<Self, ParseError> {
        let WireOutputParameters { binary_data, classification, shared_memory_region } =
            wire.parameters.unwrap_or_default();
        let name = wire.name.into_string();
        no_shared_memory(&name, shared_memory_region.is_some())?;
        no_classification(&name, classification.unwrap_or_default() != 0)?;
        Ok(Self { name, binary: binary_data })
    }
}

/// An error where a tensor lies in shared memory.
pub fn no_shared_memory(name: &str, wanted: bool) -> Result<(), ParseError> {
    if wanted { Err(ParseError::SharedMemory(name.into())) } else { Ok(()) }
}

/// An error where an output is to be classified.
pub fn no_classification(name: &str, asked: bool) -> Result<(), ParseError> {
    if asked { Err(ParseError::Classification(name.into())) } else { Ok(()) }
}
