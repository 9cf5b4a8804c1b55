//! Pinned memory for CUDA: host memory that the GPU reads and writes directly.
//!
//! Batches are staged in pinned memory, and outputs are bound to it. Both are then copied at the
//! full speed of the bus, in the order of the session's CUDA stream, and the host makes no second
//! copy. Source: <https://onnxruntime.ai/docs/performance/tune-performance/iobinding.html>.
//!
//! Inputs are passed to the run as plain tensors. They are not bound with `ort`'s `IoBinding`,
//! although ONNX Runtime would do the same with bound inputs: it copies from pinned memory with
//! `cudaMemcpyAsync` on the run's stream. The reason is a fault in `ort` 2.0.0-rc.15. If the
//! session wants an input on the processor, `ort` clones the borrowed tensor that is bound to it,
//! and that clone deadlocks. `ort` does not say which inputs a session wants on the processor.
//! Binding owned tensors would be safe, but would copy each batch once more.
//!
//! This code has not run on a GPU yet. The tests run it with ordinary memory.

use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Zeroable;
use gristmill_core::{BufferPool, Dtype, MemoryBlock, MemorySource, TensorInfo};
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{HasSelectedOutputs, OutputSelector, RunOptions, Session};
use ort::value::{DynTensor, PrimitiveTensorElementType, Tensor, ValueType};
use parking_lot::Mutex;

use crate::element_type::{unsupported, with_element_type};
use crate::error::ProviderError;
use crate::options::LoadOptions;

/// The most staging memory that a model keeps: enough for a few of its largest batches.
const RETAINED_BYTES_MAX: usize = 1 << 30;

/// Describes the pinned memory of the GPU in `options`.
pub(super) fn memory(options: &LoadOptions) -> Result<MemoryInfo<'static>, ProviderError> {
    let device = match options.cuda_options.get("device_id") {
        Some(id) => {
            id.parse().map_err(|source| ProviderError::DeviceId { value: id.clone(), source })?
        }
        None => 0,
    };
    let (kind, memory) = (AllocatorType::Device, MemoryType::CPUOutput);
    Ok(MemoryInfo::new(AllocationDevice::CUDA_PINNED, device, kind, memory)?)
}

/// An allocator of `memory`. If it cannot allocate, this logs a warning and returns none.
pub(super) fn allocator(session: &Session, memory: &MemoryInfo<'_>) -> Option<Allocator> {
    let tried = Allocator::new(session, memory.to_owned()).and_then(|allocator| {
        Tensor::<u8>::new(&allocator, [1_usize])?.try_extract_tensor::<u8>()?;
        Ok(allocator)
    });
    tried.map_err(|error| warn(&error)).ok()
}

fn warn(error: &ort::Error) {
    tracing::warn!(%error, "no pinned memory: batches go to the device by way of ordinary memory");
}

/// A pool of buffers in which batches are staged.
pub(super) fn staging(allocator: Allocator) -> BufferPool {
    let source = Source { allocator: Mutex::new(allocator), warned: AtomicBool::new(false) };
    BufferPool::of(source, RETAINED_BYTES_MAX)
}

struct Source {
    allocator: Mutex<Allocator>,
    warned: AtomicBool,
}

impl MemorySource for Source {
    fn allocate(&self, len: usize) -> Option<Box<dyn MemoryBlock>> {
        let allocator = self.allocator.lock();
        match Tensor::<u8>::new(&allocator, [len]) {
            Ok(tensor) => Some(Box::new(Block(tensor))),
            Err(error) => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    warn(&error);
                }
                None
            }
        }
    }
}

struct Block(Tensor<u8>);

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        self.0.try_extract_tensor::<u8>().map_or(&[], |(_, data)| data)
    }
}

impl AsMut<[u8]> for Block {
    fn as_mut(&mut self) -> &mut [u8] {
        self.0.try_extract_tensor_mut::<u8>().map_or(&mut [], |(_, data)| data)
    }
}

/// Options for one run. They bind each output whose shape is known before the run. `rows` is the
/// batch's number of rows if the model's rows are dynamic, else none. Each run needs new options,
/// because an output's memory belongs to its reader after the run.
pub(super) fn bind(
    session: &Session,
    outputs: &[TensorInfo],
    rows: Option<usize>,
    allocator: &Allocator,
) -> ort::Result<RunOptions<HasSelectedOutputs>> {
    let mut bound = OutputSelector::default();
    for (outlet, output) in session.outputs().iter().zip(outputs) {
        let (ValueType::Tensor { ty, .. }, Some(shape)) = (outlet.dtype(), shape(output, rows))
        else {
            continue;
        };
        if output.dtype != Dtype::String {
            let mut memory = DynTensor::new(allocator, *ty, shape)?;
            zero(&mut memory, output.dtype)?;
            bound = bound.preallocate(outlet.name(), memory);
        }
    }
    Ok(RunOptions::new()?.with_outputs(bound))
}

/// Fill `memory` with zeros. It may hold earlier outputs, and a model may leave parts of it
/// unwritten.
fn zero(memory: &mut DynTensor, dtype: Dtype) -> ort::Result<()> {
    with_element_type!(dtype, Element => zero_of::<Element>(memory), other => match other {
        Dtype::Bfloat16 => zero_of::<half::bf16>(memory),
        other => Err(ort::Error::new(unsupported(other))),
    })
}

fn zero_of<T: PrimitiveTensorElementType + Zeroable + Copy>(
    memory: &mut DynTensor,
) -> ort::Result<()> {
    memory.try_extract_tensor_mut::<T>()?.1.fill(T::zeroed());
    Ok(())
}

fn shape(output: &TensorInfo, rows: Option<usize>) -> Option<Vec<usize>> {
    let first = output.dims.first().map(|dim| dim.or(rows));
    first.into_iter().chain(output.dims.iter().skip(1).copied()).collect()
}
