//! Pinned memory for CUDA: host memory that the GPU reads directly.
//!
//! Batches are staged in pinned memory, so that they are copied to the GPU at the full speed of the
//! bus, in the order of the session's CUDA stream, and the driver makes no copy of its own. Source:
//! <https://onnxruntime.ai/docs/performance/tune-performance/iobinding.html>.
//!
//! Inputs are passed to the run as plain tensors. They are not bound with `ort`'s `IoBinding`,
//! although ONNX Runtime would do the same with bound inputs: it copies from pinned memory with
//! `cudaMemcpyAsync` on the run's stream. The reason is a fault in `ort` 2.0.0-rc.15. If the
//! session wants an input on the processor, `ort` clones the borrowed tensor that is bound to it,
//! and that clone deadlocks. `ort` does not say which inputs a session wants on the processor.
//! Binding owned tensors would be safe, but would copy each batch once more.
//!
//! Outputs are not bound to pinned memory either: ONNX Runtime 1.31 fails there with `dst_data !=
//! src_data was false`, since it copies such an output onto itself (seen on an H200). They are
//! copied to the session's ordinary memory.

use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_core::{BufferPool, MemoryBlock, MemorySource};
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::Session;
use ort::value::Tensor;
use parking_lot::Mutex;

/// Maximum staging memory that a model keeps: enough for a few of its largest batches.
const RETAINED_BYTES_MAX: usize = 1 << 30;

/// Describes the pinned memory of the GPU `device`.
pub(super) fn memory(device: i32) -> ort::Result<MemoryInfo<'static>> {
    let (kind, memory) = (AllocatorType::Device, MemoryType::CPUOutput);
    MemoryInfo::new(AllocationDevice::CUDA_PINNED, device, kind, memory)
}

/// A pool of buffers of `memory`, in which batches are staged. If the session has no such memory,
/// this logs a warning and returns none.
pub(super) fn staging(session: &Session, memory: &MemoryInfo<'_>) -> Option<BufferPool> {
    let tried = Allocator::new(session, memory.to_owned()).and_then(|allocator| {
        Tensor::<u8>::new(&allocator, [1_usize])?.try_extract_tensor::<u8>()?;
        Ok(allocator)
    });
    let allocator = tried.map_err(|error| warn(&error)).ok()?;
    let source = PinnedSource { allocator: Mutex::new(allocator), warned: AtomicBool::new(false) };
    Some(BufferPool::of(source, RETAINED_BYTES_MAX))
}

fn warn(error: &ort::Error) {
    tracing::warn!(%error, "no pinned memory: batches go to the device by way of ordinary memory");
}

struct PinnedSource {
    allocator: Mutex<Allocator>,
    warned: AtomicBool,
}

impl MemorySource for PinnedSource {
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
