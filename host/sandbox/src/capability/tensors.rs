//! `tensors`: making tensors from a guest's memory, and reading them into it, each with one copy.

mod bindings;
mod join;
mod rows;

use std::sync::Arc;

use bytes::Bytes;
use gristmill_arrays::Cast;
use gristmill_core::{Buffer, BufferPool, Dtype, NamedTensor, Shape, Tensor, TensorError};
use wasmtime::StoreContextMut;
use wasmtime::component::{
    ComponentType, HasSelf, Linker, LinkerInstance, Lower, Resource, ResourceTableError, WasmList,
};

use super::methods::{link_instead, link_methods};
use crate::call::{CallState, window};
use crate::error::PASSED_KEY;

pub use self::bindings::wit;
use self::join::{Joined, TensorPart};
use self::rows::{Rows, largest};

const INTERFACE: &str = "gristmill:plugin/tensors@0.3.0";

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &[INTERFACE];

/// Maximum dimensions of a tensor.
pub(super) const DIMENSIONS_MAX: usize = 32;

pub(super) type Created = Result<Resource<Tensor>, wit::TensorError>;

pub(crate) fn link<S: Send + 'static>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    link_instead(linker, |linker| {
        let mut instance = linker.instance(INTERFACE)?;
        link_create::<S, wit::TensorError>(&mut instance)?;
        link_methods! { instance,
            async "[method]tensor.data" = CallState::lend_tensor, (tensor: Resource<Tensor>);
            async "[method]tensor.read" = CallState::lend_part,
                (tensor: Resource<Tensor>, offset: u64, length: u64);
        }
        Ok(())
    })
}

/// Link `create`, whose errors the guest gets as `E`. This is done by hand and replaces the
/// generated function: it reads the guest's memory in place, and the generated one would copy it
/// into a `Vec` first.
pub(super) fn link_create<S, E>(
    instance: &mut LinkerInstance<'_, CallState<S>>,
) -> wasmtime::Result<()>
where
    S: Send + 'static,
    E: From<wit::TensorError> + ComponentType + Lower + Send + Sync + 'static,
{
    type Params = (wit::Dtype, WasmList<u32>, WasmList<u8>);
    instance.func_wrap_async(
        "[static]tensor.create",
        |mut store: StoreContextMut<'_, CallState<S>>, (dtype, shape, data): Params| {
            Box::new(async move {
                let state = store.data_mut();
                if let Err(error) = state.reserve_tensor(shape.len(), data.len()).await? {
                    return Ok((Err(E::from(error)),));
                }
                let shape = shape.as_le_slice(&store).iter().map(|dim| *dim as usize).collect();
                let buffer = store.data().pool.copy_from(data.as_le_slice(&store));
                let created = store.data_mut().finish_tensor(dtype_of(dtype), shape, buffer)?;
                Ok((created.map_err(E::from),))
            })
        },
    )
}

impl<S> CallState<S> {
    /// A model's outputs, as the contract has them.
    pub(crate) fn named_tensors(
        &mut self,
        outputs: Vec<NamedTensor>,
    ) -> Result<Vec<wit::NamedTensor>, ResourceTableError> {
        let outputs = outputs.into_iter().map(|NamedTensor { name, tensor }| {
            let tensor = self.table.push(tensor)?;
            Ok(wit::NamedTensor { name: name.to_string(), tensor })
        });
        outputs.collect()
    }
}

impl<S: Send> CallState<S> {
    /// Check a new tensor of `dimensions` dimensions and `bytes` bytes against the limits, and
    /// count it.
    pub(super) async fn reserve_tensor(
        &mut self,
        dimensions: usize,
        bytes: usize,
    ) -> wasmtime::Result<Result<(), wit::TensorError>> {
        if dimensions > DIMENSIONS_MAX {
            let message = format!("{dimensions} dimensions are over the limit of {DIMENSIONS_MAX}");
            return Ok(Err(wit::TensorError::TooLarge(message)));
        }
        let limit = self.limits.tensor_bytes;
        if bytes > limit {
            let message = format!(
                "{bytes} bytes are over the limit of {limit} for one tensor ({PASSED_KEY})"
            );
            return Ok(Err(wit::TensorError::TooLarge(message)));
        }
        self.before_looking_at(bytes).await?;
        self.hold(BufferPool::bytes_taken(bytes))?;
        Ok(Ok(()))
    }

    /// [`data`](wit::HostTensor::data), as [`lend`](Self::lend) does it.
    pub(super) async fn lend_tensor(
        &mut self,
        tensor: Resource<Tensor>,
    ) -> wasmtime::Result<Bytes> {
        let bytes = Bytes::from_owner(self.table.get(&tensor)?.clone());
        self.lend(bytes).await
    }

    /// [`read`](wit::HostTensor::read), as [`lend`](Self::lend) does it.
    pub(super) async fn lend_part(
        &mut self,
        tensor: Resource<Tensor>,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Bytes> {
        let bytes = Bytes::from_owner(self.table.get(&tensor)?.clone());
        let range = window(&bytes, offset, length);
        self.lend(bytes.slice(range)).await
    }

    pub(super) fn finish_tensor(
        &mut self,
        dtype: Dtype,
        shape: Shape,
        buffer: Arc<Buffer>,
    ) -> wasmtime::Result<Created> {
        let made = Tensor::new(dtype, shape, buffer);
        // The contract promises it to plugins.
        let made = made.and_then(|tensor| tensor.check_utf8().map(|()| tensor));
        match made {
            Ok(tensor) => Ok(Ok(self.table.push(tensor)?)),
            Err(TensorError::Length { expected, actual }) => {
                let (expected, actual) = (expected as u64, actual as u64);
                Ok(Err(wit::TensorError::LengthMismatch(wit::LengthMismatch { expected, actual })))
            }
            Err(error @ TensorError::Overflow(_)) => {
                Ok(Err(wit::TensorError::TooLarge(error.to_string())))
            }
            Err(
                error @ (TensorError::Element(_) | TensorError::NoParts | TensorError::UnlikeParts),
            ) => Ok(Err(wit::TensorError::InvalidElement(error.to_string()))),
        }
    }

    /// The tensor. Returns when the call is on a thread where all of its bytes may be read.
    async fn inspected(&mut self, tensor: &Resource<Tensor>) -> wasmtime::Result<Tensor> {
        let tensor = self.table.get(tensor)?.clone();
        self.before_looking_at(tensor.as_bytes().len()).await?;
        Ok(tensor)
    }
}

impl<S: Send> CallState<S> {
    /// Join the tensors as `plan` says.
    async fn join(
        &mut self,
        tensors: &[Resource<Tensor>],
        plan: impl FnOnce(&[Tensor]) -> Result<Joined, String>,
    ) -> wasmtime::Result<Created> {
        self.meter.take_turns().await?;
        // A list may name the same tensor again and again.
        if tensors.len() > self.limits.handles {
            let (count, limit) = (tensors.len(), self.limits.handles);
            let why = format!("{count} tensors are given; the limit is {limit}");
            return Ok(Err(wit::TensorError::InvalidArgument(why)));
        }
        let parts = tensors.iter().map(|tensor| Ok(self.table.get(tensor)?.clone()));
        let parts = parts.collect::<wasmtime::Result<Vec<_>>>()?;
        let joined = match plan(&parts) {
            Ok(joined) => joined,
            Err(why) => return Ok(Err(wit::TensorError::InvalidArgument(why))),
        };
        if let Err(error) = self.reserve_tensor(joined.shape.len(), joined.bytes).await? {
            return Ok(Err(error));
        }
        let buffer = joined.copy(&parts, &self.pool, || self.may_go_on())?;
        self.finish_tensor(joined.dtype, joined.shape, buffer)
    }
}

impl<S: Send> wit::Host for CallState<S> {}

impl<S: Send> wit::HostTensor for CallState<S> {
    async fn create(
        &mut self,
        dtype: wit::Dtype,
        shape: Vec<u32>,
        data: Vec<u8>,
    ) -> wasmtime::Result<Created> {
        if let Err(error) = self.reserve_tensor(shape.len(), data.len()).await? {
            return Ok(Err(error));
        }
        let buffer = self.pool.copy_from(&data);
        let shape = shape.iter().map(|dim| *dim as usize).collect();
        self.finish_tensor(dtype_of(dtype), shape, buffer)
    }

    fn dtype(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<wit::Dtype> {
        Ok(wit_dtype_of(self.table.get(&tensor)?.dtype()))
    }

    fn shape(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<Vec<u32>> {
        Ok(self.table.get(&tensor)?.shape().iter().map(|dim| *dim as u32).collect())
    }

    async fn data(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<Vec<u8>> {
        Ok(self.lend_tensor(tensor).await?.to_vec())
    }

    async fn read(
        &mut self,
        tensor: Resource<Tensor>,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Vec<u8>> {
        Ok(self.lend_part(tensor, offset, length).await?.to_vec())
    }

    async fn argmax(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<Vec<wit::Scored>> {
        let tensor = self.inspected(&tensor).await?;
        let Some(rows) = Rows::of(&tensor) else { return Ok(Vec::new()) };
        self.before_copying(tensor.rows() * size_of::<wit::Scored>()).await?;
        Ok(rows.argmax(|| self.may_go_on())?)
    }

    async fn top_k(
        &mut self,
        tensor: Resource<Tensor>,
        row: u32,
        k: u32,
    ) -> wasmtime::Result<Vec<wit::Scored>> {
        let tensor = self.inspected(&tensor).await?;
        let Some(rows) = Rows::of(&tensor) else { return Ok(Vec::new()) };
        let Some(row) = rows.row(row as usize) else { return Ok(Vec::new()) };
        let k = (k as usize).min(row.len());
        // Memory for the heap that selects, and for the list that is returned.
        self.before_copying(k * 2 * size_of::<wit::Scored>()).await?;
        Ok(largest(row, k, || self.may_go_on())?)
    }

    async fn softmax(
        &mut self,
        tensor: Resource<Tensor>,
    ) -> wasmtime::Result<Option<Resource<Tensor>>> {
        let tensor = self.inspected(&tensor).await?;
        let Some(rows) = Rows::of(&tensor) else { return Ok(None) };
        self.hold(BufferPool::bytes_taken(tensor.as_bytes().len()))?;
        let buffer = self.pool.try_fill(tensor.as_bytes().len(), |bytes| {
            rows.softmax(bytemuck::cast_slice_mut(bytes), || self.may_go_on())
        })?;
        let softened = Tensor::new(Dtype::Float32, tensor.shape().into(), buffer)?;
        Ok(Some(self.table.push(softened)?))
    }

    async fn concat(
        &mut self,
        tensors: Vec<Resource<Tensor>>,
        axis: u32,
    ) -> wasmtime::Result<Created> {
        self.join(&tensors, |parts| Joined::concat(parts, axis as usize)).await
    }

    async fn stack(
        &mut self,
        tensors: Vec<Resource<Tensor>>,
        axis: u32,
    ) -> wasmtime::Result<Created> {
        self.join(&tensors, |parts| Joined::stack(parts, axis as usize)).await
    }

    async fn slice(
        &mut self,
        tensor: Resource<Tensor>,
        axis: u32,
        start: u32,
        end: u32,
    ) -> wasmtime::Result<Created> {
        let tensor = self.table.get(&tensor)?.clone();
        let (axis, range) = (axis as usize, start as usize..end as usize);
        let part = match TensorPart::of(&tensor, axis, range.clone()) {
            Ok(part) => part,
            Err(why) => return Ok(Err(wit::TensorError::InvalidArgument(why))),
        };
        if axis == 0 {
            // Rows share the tensor's memory. Those of strings are found by reading the texts.
            self.before_looking_at(tensor.as_bytes().len()).await?;
            let rows = tensor.slice_rows(range);
            let rows = rows.ok_or_else(|| wasmtime::Error::msg("rows are out of range"))?;
            return Ok(Ok(self.table.push(rows)?));
        }
        if tensor.dtype() == Dtype::String {
            let why = format!("axis is {axis}, but tensors of strings have only axis 0 here");
            return Ok(Err(wit::TensorError::InvalidArgument(why)));
        }
        if let Err(error) = self.reserve_tensor(part.shape.len(), part.bytes()).await? {
            return Ok(Err(error));
        }
        let buffer = part.copy(&tensor, &self.pool, || self.may_go_on())?;
        self.finish_tensor(tensor.dtype(), part.shape, buffer)
    }

    async fn cast(
        &mut self,
        tensor: Resource<Tensor>,
        dtype: wit::Dtype,
    ) -> wasmtime::Result<Created> {
        let (tensor, dtype) = (self.inspected(&tensor).await?, dtype_of(dtype));
        if tensor.dtype() == dtype {
            return Ok(Ok(self.table.push(tensor)?));
        }
        let Some(cast) = Cast::between(tensor.dtype(), dtype) else {
            let why = format!("{} cannot be cast to {dtype}", tensor.dtype());
            return Ok(Err(wit::TensorError::InvalidArgument(why)));
        };
        let bytes = tensor.as_bytes().len() / cast.from_bytes * cast.to_bytes;
        if let Err(error) = self.reserve_tensor(tensor.shape().len(), bytes).await? {
            return Ok(Err(error));
        }
        let buffer = self
            .pool
            .try_fill(bytes, |target| cast.run(tensor.as_bytes(), target, || self.may_go_on()))?;
        self.finish_tensor(dtype, tensor.shape().into(), buffer)
    }

    fn drop(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<()> {
        self.table.delete(tensor)?;
        Ok(())
    }
}

/// The text of an error about the tensor that would be made.
pub(super) fn text_of(error: wit::TensorError) -> String {
    match error {
        wit::TensorError::TooLarge(text)
        | wit::TensorError::InvalidElement(text)
        | wit::TensorError::InvalidArgument(text) => text,
        wit::TensorError::LengthMismatch(lengths) => {
            format!("{} bytes are needed, not {}", lengths.expected, lengths.actual)
        }
    }
}

/// Conversions between the contract's dtypes and core's, from one list.
macro_rules! dtypes {
    ($($wit:ident = $core:ident),* $(,)?) => {
        pub(super) fn dtype_of(dtype: wit::Dtype) -> Dtype {
            match dtype { $(wit::Dtype::$wit => Dtype::$core),* }
        }

        pub(super) fn wit_dtype_of(dtype: Dtype) -> wit::Dtype {
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
