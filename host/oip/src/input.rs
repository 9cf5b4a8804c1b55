//! An input tensor of a request, in either encoding of the protocol.

use bytes::Bytes;
use gristmill_core::{BufferPool, Dtype, Shape, Tensor, TensorError, Texts};

use crate::bounded::Text;
use crate::elements;
use crate::error::ParseError;
use crate::limits::DIMENSIONS_MAX;
use crate::object::{Object, Whole};
use crate::room::Room;
use crate::unsupported::no_shared_memory;
use crate::wire::WireInput;

/// An input tensor.
#[derive(Clone, Debug)]
pub struct Input {
    /// The client's name for it.
    pub name: String,
    /// Element type.
    pub datatype: Dtype,
    /// Dimensions.
    pub shape: Shape,
    /// The bytes of a binary tensor: little-endian elements.
    pub data: Bytes,
    /// Its parameters for a pipeline. Models have none.
    pub parameters: PipelineParameters,
}

/// The parameters of a pipeline's input, which over `/v1` are parts of the HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PipelineParameters {
    /// `content_type`: the media type of the text.
    pub content_type: Option<String>,
    /// `query`: a query string, percent-encoded.
    pub query: Option<String>,
}

impl Input {
    /// Read an input of the JSON part. Binary elements are taken from the front of `binary`.
    ///
    /// # Errors
    /// The input has no elements, has them twice, or they cannot be read; or its datatype or shape
    /// is not valid.
    pub(crate) fn from_wire(
        wire: WireInput<'_>,
        binary: &mut Bytes,
        room: &Room<'_>,
    ) -> Result<Self, ParseError> {
        let name = wire.name.into_string();
        let shape = wire.shape.0.into_iter().map(|Whole(size)| size).collect();
        let (datatype, shape) = Self::described(&name, wire.datatype.as_str(), shape)?;
        let Object(parameters) = wire.parameters.unwrap_or_default();
        no_shared_memory(&name, parameters.shared_memory_region.is_some())?;
        let size = parameters.binary_data_size.map(|size| size.parameter("binary_data_size"));
        let data = match (size.transpose()?, wire.data) {
            (Some(_), Some(_)) => return Err(ParseError::TwoData { name }),
            (None, None) => return Err(ParseError::NoData { name }),
            (None, Some(data)) => elements::read(
                &elements::Expected { name: &name, datatype, shape: &shape },
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
        let parameters = PipelineParameters {
            content_type: parameters.content_type.map(Text::into_string),
            query: parameters.query.map(Text::into_string),
        };
        Ok(Self { name, datatype, shape, data, parameters })
    }

    /// The datatype and the shape of the input called `name`.
    ///
    /// # Errors
    /// [`ParseError::Datatype`] for an unknown datatype, [`ParseError::Shape`] for a negative size,
    /// [`ParseError::Dimensions`] for too many sizes.
    pub fn described(
        name: &str,
        datatype: &str,
        shape: Vec<i128>,
    ) -> Result<(Dtype, Shape), ParseError> {
        let name = || name.to_owned();
        if shape.len() > DIMENSIONS_MAX {
            return Err(ParseError::Dimensions { name: name(), count: shape.len() });
        }
        let datatype = Dtype::named(datatype).ok_or_else(|| {
            let datatype: String = datatype.chars().take(80).collect();
            let why = format!("{datatype:?} is not a datatype");
            ParseError::Datatype { name: name(), why }
        })?;
        let sizes = shape.iter().map(|size| usize::try_from(*size).ok());
        match sizes.collect::<Option<Shape>>() {
            Some(sizes) => Ok((datatype, sizes)),
            None => Err(ParseError::Shape { name: name(), shape }),
        }
    }

    /// Whether its bytes are aligned, so that its tensor needs no copy of them.
    pub fn is_aligned(&self) -> bool {
        let size = self.datatype.size_bytes().unwrap_or(1);
        self.data.is_empty() || (self.data.as_ptr() as usize).is_multiple_of(size)
    }

    /// The bytes that a backend holds for it during a run, besides its own ([`Tensor::run_bytes`]).
    pub fn run_bytes(&self) -> usize {
        Tensor::run_bytes(self.datatype, &self.shape, self.data.len())
    }

    /// Whether making its tensor takes time in proportion to its bytes, because they are copied or
    /// checked.
    pub fn takes_work(&self) -> bool {
        matches!(self.datatype, Dtype::Bool | Dtype::String) || !self.is_aligned()
    }

    /// The tensor. It shares the input's memory if that is aligned; otherwise it is a copy.
    ///
    /// # Errors
    /// [`ParseError::Tensor`] if the bytes are not a tensor of the datatype and shape.
    pub fn tensor(&self, pool: &BufferPool) -> Result<Tensor, ParseError> {
        let failed = |error| ParseError::Tensor { name: self.name.clone(), error };
        let size = Tensor::size_bytes(self.datatype, &self.shape).map_err(failed)?;
        if let Some(expected) = size.filter(|size| *size != self.data.len()) {
            let error = TensorError::Length { expected, actual: self.data.len() };
            return Err(failed(error));
        }
        let buffer = match &self.data[..] {
            // An empty slice need not be aligned.
            [] => pool.copy_from(&[]),
            _ => pool.adopt(self.data.clone(), self.datatype.size_bytes().unwrap_or(1)),
        };
        Tensor::new(self.datatype, self.shape.clone(), buffer).map_err(failed)
    }

    /// The elements of a BYTES tensor, which need not be UTF-8.
    ///
    /// # Errors
    /// [`ParseError::Datatype`] for another datatype, [`ParseError::Count`] for another number of
    /// elements than the shape needs, [`ParseError::Data`] for an element that is cut short.
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
        let (mut read, mut texts) = (Texts::of(&self.data), Vec::new());
        for text in read.by_ref() {
            if expected == Some(texts.len()) {
                return Err(miscounted(texts.len() + 1));
            }
            let text = text.map_err(|error| {
                let why = format!("element {} {error}", texts.len());
                ParseError::Data { name: name(), why }
            })?;
            texts.push(self.data.slice_ref(text));
        }
        if !read.rest().is_empty() || expected != Some(texts.len()) {
            return Err(miscounted(texts.len()));
        }
        Ok(texts)
    }
}
