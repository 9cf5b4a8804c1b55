//! The interface `tensor` of `wasi:nn`. Its constructor has no error, so a tensor's data may be of
//! another length than its dimensions need. `compute` says so.

use bytes::Bytes;
use gristmill_core::{BufferPool, Dtype};
use wasmtime::StoreContextMut;
use wasmtime::component::{LinkerInstance, Resource, WasmList};

use super::bindings::wit::tensor as wit;
use super::resources::{NnTensor, RESOURCE_BYTES};
use crate::call::CallState;
use crate::capability::methods::link_methods;
use crate::error::CallLimit;
use crate::limiter::Limited;

/// Link the functions that pass bytes. This is done by hand and replaces the generated functions,
/// which copy twice.
pub(super) fn link_instead<S: Send + 'static>(
    instance: &mut LinkerInstance<'_, CallState<S>>,
) -> wasmtime::Result<()> {
    type Given = (WasmList<u32>, wit::TensorType, WasmList<u8>);
    instance.func_wrap_async(
        "[constructor]tensor",
        |mut store: StoreContextMut<'_, CallState<S>>, (dimensions, ty, data): Given| {
            Box::new(async move {
                store.data_mut().before_tensor(dimensions.len(), data.len()).await?;
                let dimensions = dimensions.as_le_slice(&store).to_vec();
                let buffer = store.data().pool.copy_from(data.as_le_slice(&store));
                let tensor = NnTensor::given(dimensions, dtype_of(ty), buffer)?;
                Ok((store.data_mut().table.push(tensor)?,))
            })
        },
    )?;
    link_methods! { instance,
        async "[method]tensor.data" = CallState::lend_nn_tensor, (tensor: Resource<NnTensor>);
    }
    Ok(())
}

impl<S: Send> CallState<S> {
    /// Count a new tensor of so many dimensions and bytes.
    async fn before_tensor(&mut self, dimensions: usize, bytes: usize) -> wasmtime::Result<()> {
        let limit = self.limits.tensor_bytes;
        if bytes > limit {
            return Err(Limited::Call(CallLimit::Tensor(limit)).into());
        }
        let listed = dimensions.saturating_mul(size_of::<u32>());
        self.before_looking_at(bytes.saturating_add(listed)).await?;
        let taken = BufferPool::bytes_taken(bytes).saturating_add(RESOURCE_BYTES);
        Ok(self.hold(taken.saturating_add(listed))?)
    }

    /// [`data`](wit::HostTensor::data), as [`lend`](Self::lend) does it.
    async fn lend_nn_tensor(&mut self, tensor: Resource<NnTensor>) -> wasmtime::Result<Bytes> {
        let bytes = self.table.get(&tensor)?.bytes();
        self.lend(bytes).await
    }
}

impl<S: Send> wit::Host for CallState<S> {}

impl<S: Send> wit::HostTensor for CallState<S> {
    async fn new(
        &mut self,
        dimensions: Vec<u32>,
        ty: wit::TensorType,
        data: Vec<u8>,
    ) -> wasmtime::Result<Resource<NnTensor>> {
        self.before_tensor(dimensions.len(), data.len()).await?;
        let tensor = NnTensor::given(dimensions, dtype_of(ty), self.pool.copy_from(&data))?;
        Ok(self.table.push(tensor)?)
    }

    async fn dimensions(&mut self, tensor: Resource<NnTensor>) -> wasmtime::Result<Vec<u32>> {
        let bytes = self.table.get(&tensor)?.dimensions_bytes();
        self.before_copying(bytes).await?;
        Ok(self.table.get(&tensor)?.dimensions())
    }

    fn ty(&mut self, tensor: Resource<NnTensor>) -> wasmtime::Result<wit::TensorType> {
        let ty = type_of(self.table.get(&tensor)?.dtype());
        ty.ok_or_else(|| wasmtime::Error::msg("the tensor has no type of wasi:nn"))
    }

    async fn data(&mut self, tensor: Resource<NnTensor>) -> wasmtime::Result<Vec<u8>> {
        Ok(self.lend_nn_tensor(tensor).await?.to_vec())
    }

    fn drop(&mut self, tensor: Resource<NnTensor>) -> wasmtime::Result<()> {
        self.table.delete(tensor)?;
        Ok(())
    }
}

/// Conversions between the types of `wasi:nn` and core's, from one list.
macro_rules! types {
    ($($wit:ident = $core:ident),* $(,)?) => {
        fn dtype_of(ty: wit::TensorType) -> Dtype {
            match ty { $(wit::TensorType::$wit => Dtype::$core),* }
        }

        pub(super) fn type_of(dtype: Dtype) -> Option<wit::TensorType> {
            match dtype {
                $(Dtype::$core => Some(wit::TensorType::$wit),)*
                _ => None,
            }
        }
    };
}

types! {
    Fp16 = Float16,
    Fp32 = Float32,
    Fp64 = Float64,
    Bf16 = Bfloat16,
    U8 = Uint8,
    I32 = Int32,
    I64 = Int64,
}
