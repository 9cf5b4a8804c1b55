//! Tensors as values of ONNX Runtime, and its outputs as tensors.
//!
//! Invariant: an output never lies in memory that an input's owner may use again.

use std::marker::PhantomData;

use bytemuck::{CheckedBitPattern, NoUninit};
use gristmill_core::{BufferPool, Dtype, ModelError, Tensor, TensorInfo};
use ort::session::{SessionInputValue, SessionOutputs};
use ort::value::{DynValue, PrimitiveTensorElementType, TensorElementType, TensorRef};

use super::run::{Pin, failed};
use super::texts;
use crate::element_type::{unsupported, with_element_type};

/// The type of elements, if this host knows it.
pub(super) fn from_ort(element: TensorElementType) -> Option<Dtype> {
    Some(match element {
        TensorElementType::Bool => Dtype::Bool,
        TensorElementType::Uint8 => Dtype::Uint8,
        TensorElementType::Int8 => Dtype::Int8,
        TensorElementType::Uint16 => Dtype::Uint16,
        TensorElementType::Int16 => Dtype::Int16,
        TensorElementType::Uint32 => Dtype::Uint32,
        TensorElementType::Int32 => Dtype::Int32,
        TensorElementType::Uint64 => Dtype::Uint64,
        TensorElementType::Int64 => Dtype::Int64,
        TensorElementType::Float16 => Dtype::Float16,
        TensorElementType::Bfloat16 => Dtype::Bfloat16,
        TensorElementType::Float32 => Dtype::Float32,
        TensorElementType::Float64 => Dtype::Float64,
        TensorElementType::String => Dtype::String,
        _ => return None,
    })
}

/// The output, copied if it lies in an input's memory. That happens if the model names one tensor
/// as input and output. An answer can outlive the memory of its inputs.
pub(super) fn unaliased(
    output: Tensor,
    inputs: &[Tensor],
    pool: &BufferPool,
) -> Result<Tensor, ModelError> {
    let start = output.as_bytes().as_ptr();
    if !inputs.iter().any(|input| input.as_bytes().as_ptr_range().contains(&start)) {
        return Ok(output);
    }
    let buffer = pool.copy_from(output.as_bytes());
    Tensor::new(output.dtype(), output.shape().into(), buffer).map_err(failed)
}

/// The tensor as a value of ONNX Runtime. Texts are copied, because ONNX Runtime needs texts of its
/// own. Other elements are not copied.
pub(super) fn view(tensor: &Tensor) -> Result<SessionInputValue<'_>, ModelError> {
    if tensor.dtype() == Dtype::String {
        return Ok(texts::value_of(tensor)?.into());
    }
    with_element_type!(tensor.dtype(), Element => view_of::<Element>(tensor), other => match other {
        Dtype::Bfloat16 => view_of::<half::bf16>(tensor),
        other => Err(ModelError::new(unsupported(other))),
    })
}

fn view_of<T>(tensor: &Tensor) -> Result<SessionInputValue<'_>, ModelError>
where
    T: PrimitiveTensorElementType + CheckedBitPattern + std::fmt::Debug + 'static,
{
    let shape: Vec<i64> = tensor.shape().iter().map(|dim| *dim as i64).collect();
    let data: &[T] = match tensor.as_bytes() {
        // An empty slice may have any alignment, which the cast would refuse.
        [] => &[],
        bytes => bytemuck::checked::try_cast_slice(bytes).map_err(failed)?,
    };
    Ok(TensorRef::from_array_view((shape, data)).map_err(failed)?.into())
}

/// The memory for outputs.
#[derive(Clone, Copy)]
pub(super) struct OutputMemory<'a> {
    pub(super) pool: &'a BufferPool,
    /// If set, large outputs stay in the session's memory, and each holds this.
    pub(super) pin: Option<&'a Pin>,
}

pub(super) fn read_all(
    values: SessionOutputs<'_>,
    outputs: &[TensorInfo],
    memory: OutputMemory<'_>,
) -> Result<Vec<Tensor>, ModelError> {
    let values = values.into_iter().zip(outputs);
    values.map(|((_, value), output)| read(value, output.dtype, memory)).collect()
}

/// An output as a tensor. A large output stays in the session's memory if it may; others are
/// copied.
fn read(value: DynValue, dtype: Dtype, memory: OutputMemory<'_>) -> Result<Tensor, ModelError> {
    with_element_type!(dtype, Element => read_of::<Element>(value, dtype, memory), other => match other {
        Dtype::Bfloat16 => read_of::<half::bf16>(value, dtype, memory),
        Dtype::String => texts::tensor_of(&value, memory.pool),
        other => Err(ModelError::new(unsupported(other))),
    })
}

/// The smallest output that is kept in the session's memory, in bytes. Copying a smaller one costs
/// less.
const KEPT_BYTES_MIN: usize = 16 << 10;

fn read_of<T>(
    value: DynValue,
    dtype: Dtype,
    OutputMemory { pool, pin }: OutputMemory<'_>,
) -> Result<Tensor, ModelError>
where
    T: PrimitiveTensorElementType + NoUninit,
{
    let (shape, data) = value.try_extract_tensor::<T>().map_err(failed)?;
    let shape = shape.iter().map(|dim| *dim as usize).collect();
    let bytes = bytemuck::cast_slice(data);
    let buffer = match pin.filter(|_| bytes.len() >= KEPT_BYTES_MIN) {
        Some(pin) => {
            let output = Output::<T> { value, element: PhantomData, _pin: pin.clone() };
            pool.adopt(output, size_of::<T>())
        }
        None => pool.copy_from(bytes),
    };
    Tensor::new(dtype, shape, buffer).map_err(failed)
}

/// A value of ONNX Runtime with elements `T`, in memory that the processor can read.
struct Output<T> {
    value: DynValue,
    element: PhantomData<fn() -> T>,
    _pin: Pin,
}

impl<T: PrimitiveTensorElementType + NoUninit> AsRef<[u8]> for Output<T> {
    fn as_ref(&self) -> &[u8] {
        // This cannot fail: `read_of` has read the value as this type.
        self.value.try_extract_tensor::<T>().map_or(&[], |(_, data)| bytemuck::cast_slice(data))
    }
}
