//! `tensors`: made from a guest's memory with one copy, read into it with one more.

use gristmill_core::{Dtype, Tensor, TensorError};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, WasmList};

use super::window;
use crate::bindings::tensors::{self as wit, Host, HostTensor, LengthMismatch, Scored};
use crate::call::CallState;

type Created = Result<Resource<Tensor>, wit::TensorError>;

/// `[static]tensor.create`, reading `data` where it lies in the guest's memory.
pub(super) fn link_create(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    let create = |mut store: StoreContextMut<'_, CallState>,
                  (dtype, shape, data): (wit::Dtype, Vec<u32>, WasmList<u8>)| {
        if let Err(error) = store.data_mut().admit_tensor(data.len())? {
            return Ok((Err(error),));
        }
        let pool = store.data().pool.clone();
        let buffer = pool.copy_from(data.as_le_slice(&store));
        store.data_mut().finish_tensor(dtype, &shape, buffer).map(|created| (created,))
    };
    linker.instance("gristmill:plugin/tensors@0.1.0")?.func_wrap("[static]tensor.create", create)
}

impl CallState {
    /// Hold `bytes` for a new tensor against the limits.
    fn admit_tensor(&mut self, bytes: usize) -> wasmtime::Result<Result<(), wit::TensorError>> {
        let limit = self.limits.tensor_bytes;
        if bytes > limit {
            let message = format!("{bytes} bytes are over the limit of {limit} for one tensor");
            return Ok(Err(wit::TensorError::TooLarge(message)));
        }
        self.hold(bytes)?;
        Ok(Ok(()))
    }

    fn finish_tensor(
        &mut self,
        dtype: wit::Dtype,
        shape: &[u32],
        buffer: std::sync::Arc<gristmill_core::Buffer>,
    ) -> wasmtime::Result<Created> {
        let shape = shape.iter().map(|dim| *dim as usize).collect();
        match Tensor::new(from_wit(dtype), shape, buffer) {
            Ok(tensor) => Ok(Ok(self.table.push(tensor)?)),
            Err(TensorError::Length { expected, actual }) => {
                let (expected, actual) = (expected as u64, actual as u64);
                Ok(Err(wit::TensorError::LengthMismatch(LengthMismatch { expected, actual })))
            }
            Err(error @ TensorError::Overflow(_)) => {
                Ok(Err(wit::TensorError::TooLarge(error.to_string())))
            }
            Err(error @ TensorError::Element(_)) => {
                Ok(Err(wit::TensorError::InvalidElement(error.to_string())))
            }
        }
    }
}

impl Host for CallState {}

impl HostTensor for CallState {
    fn create(
        &mut self,
        dtype: wit::Dtype,
        shape: Vec<u32>,
        data: Vec<u8>,
    ) -> wasmtime::Result<Created> {
        if let Err(error) = self.admit_tensor(data.len())? {
            return Ok(Err(error));
        }
        let buffer = self.pool.copy_from(&data);
        self.finish_tensor(dtype, &shape, buffer)
    }

    fn dtype(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<wit::Dtype> {
        Ok(to_wit(self.table.get(&tensor)?.dtype()))
    }

    fn shape(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<Vec<u32>> {
        Ok(self.table.get(&tensor)?.shape().iter().map(|dim| *dim as u32).collect())
    }

    fn data(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<Vec<u8>> {
        Ok(self.table.get(&tensor)?.as_bytes().to_vec())
    }

    fn read(
        &mut self,
        tensor: Resource<Tensor>,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Vec<u8>> {
        Ok(window(self.table.get(&tensor)?.as_bytes(), offset, length).to_vec())
    }

    fn argmax(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<Vec<Scored>> {
        let tensor = self.table.get(&tensor)?;
        let Some((values, width)) = rows_of(tensor) else { return Ok(Vec::new()) };
        let first_largest = |row: &[f32]| {
            let (index, value) =
                row.iter().enumerate().fold((0, row[0]), |best, (index, value)| {
                    if *value > best.1 { (index, *value) } else { best }
                });
            Scored { index: index as u32, value }
        };
        Ok(values.chunks_exact(width).map(first_largest).collect())
    }

    fn top_k(
        &mut self,
        tensor: Resource<Tensor>,
        row: u32,
        k: u32,
    ) -> wasmtime::Result<Vec<Scored>> {
        let tensor = self.table.get(&tensor)?;
        let Some((values, width)) = rows_of(tensor) else { return Ok(Vec::new()) };
        let Some(row) = values.chunks_exact(width).nth(row as usize) else { return Ok(Vec::new()) };
        let scored = |(index, value): (usize, &f32)| Scored { index: index as u32, value: *value };
        let mut all: Vec<_> = row.iter().enumerate().map(scored).collect();
        all.sort_by(|a, b| b.value.total_cmp(&a.value).then(a.index.cmp(&b.index)));
        all.truncate(k as usize);
        Ok(all)
    }

    fn softmax(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<Option<Resource<Tensor>>> {
        let tensor = self.table.get(&tensor)?.clone();
        let Some((values, width)) = rows_of(&tensor) else { return Ok(None) };
        self.hold(tensor.as_bytes().len())?;
        let buffer = self.pool.fill(tensor.as_bytes().len(), |bytes| {
            let target: &mut [f32] = bytemuck::cast_slice_mut(bytes);
            for (row, target) in values.chunks_exact(width).zip(target.chunks_exact_mut(width)) {
                softmax(row, target);
            }
        });
        let softened = Tensor::new(Dtype::Float32, tensor.shape().into(), buffer)?;
        Ok(Some(self.table.push(softened)?))
    }

    fn drop(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<()> {
        self.table.delete(tensor)?;
        Ok(())
    }
}

/// The values and the length of a row; none where there is nothing to look at.
fn rows_of(tensor: &Tensor) -> Option<(&[f32], usize)> {
    let values = tensor.as_f32()?;
    let width = values.len().checked_div(tensor.rows())?;
    (width > 0).then_some((values, width))
}

fn softmax(row: &[f32], target: &mut [f32]) {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for (value, target) in row.iter().zip(&mut *target) {
        *target = (value - largest).exp();
    }
    let sum: f32 = target.iter().sum();
    for value in target {
        *value /= sum;
    }
}

/// Both ways between the contract's dtypes and core's, from one list.
macro_rules! dtypes {
    ($($wit:ident = $core:ident),* $(,)?) => {
        pub(super) fn from_wit(dtype: wit::Dtype) -> Dtype {
            match dtype { $(wit::Dtype::$wit => Dtype::$core),* }
        }

        fn to_wit(dtype: Dtype) -> wit::Dtype {
            match dtype { $(Dtype::$core => wit::Dtype::$wit),* }
        }
    };
}

dtypes! {
    Bool = Bool,
    Uint8 = Uint8,
    Int8 = Int8,
    Uint16 = Uint16,
    Int16 = Int16,
    Uint32 = Uint32,
    Int32 = Int32,
    Uint64 = Uint64,
    Int64 = Int64,
    Float16 = Float16,
    Bfloat16 = Bfloat16,
    Float32 = Float32,
    Float64 = Float64,
    String = String,
}
