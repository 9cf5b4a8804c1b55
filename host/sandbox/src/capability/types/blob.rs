//! Blobs: bytes that the host holds. Those of a request are there already; those of a plugin are
//! copied once, out of its memory, and counted before.

use bytes::Bytes;
use wasmtime::StoreContextMut;
use wasmtime::component::{LinkerInstance, Resource, WasmList, WasmStr};

use super::super::tensors;
use super::base64;
use super::bindings::wit;
use crate::call::{CallState, window};
use crate::meter::CpuExhausted;

type Decoded = Result<Resource<Bytes>, wit::BlobError>;

/// Link the functions that make blobs. This is done by hand and replaces the generated functions:
/// these read the guest's memory in place, and the generated ones would copy it first.
pub(super) fn link<S: Send + 'static>(
    instance: &mut LinkerInstance<'_, CallState<S>>,
) -> wasmtime::Result<()> {
    instance.func_wrap_async(
        "[static]blob.from-bytes",
        |mut store: StoreContextMut<'_, CallState<S>>, (data,): (WasmList<u8>,)| {
            Box::new(async move {
                store.data_mut().before_making(data.len(), data.len()).await?;
                let bytes = Bytes::copy_from_slice(data.as_le_slice(&store));
                Ok((store.data_mut().table.push(bytes)?,))
            })
        },
    )?;
    instance.func_wrap_async(
        "[static]blob.from-base64",
        |mut store: StoreContextMut<'_, CallState<S>>, (text,): (WasmStr,)| {
            Box::new(async move {
                let length = text.to_str(&store)?.len();
                store.data_mut().before_making(length, base64::bytes_max(length)).await?;
                let decoded = decode(store.data(), &text.to_str(&store)?)?;
                Ok((store.data_mut().keep_decoded(decoded)?,))
            })
        },
    )
}

/// The bytes of `text`, in parts between which the CPU time is checked.
fn decode<S>(state: &CallState<S>, text: &str) -> Result<Result<Vec<u8>, String>, CpuExhausted> {
    base64::decode(text, || state.may_go_on())
}

impl<S> CallState<S> {
    /// [`read`](wit::HostBlob::read), as [`lend`](Self::lend) does it.
    pub(in crate::capability) async fn lend_blob(
        &mut self,
        blob: Resource<Bytes>,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Bytes> {
        let blob = self.table.get(&blob)?;
        let part = blob.slice(window(blob, offset, length));
        self.lend(part).await
    }

    /// Prepare to make a blob of at most `bytes` bytes out of `given` bytes.
    async fn before_making(&mut self, read_bytes: usize, bytes: usize) -> wasmtime::Result<()> {
        self.before_looking_at(read_bytes).await?;
        Ok(self.hold(bytes)?)
    }

    fn keep_decoded(&mut self, decoded: Result<Vec<u8>, String>) -> wasmtime::Result<Decoded> {
        match decoded {
            Ok(bytes) => Ok(Ok(self.table.push(Bytes::from(bytes))?)),
            Err(why) => Ok(Err(wit::BlobError::InvalidBase64(why))),
        }
    }
}

impl<S: Send> wit::HostBlob for CallState<S> {
    fn len(&mut self, blob: Resource<Bytes>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&blob)?.len() as u64)
    }

    async fn read(
        &mut self,
        blob: Resource<Bytes>,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Vec<u8>> {
        Ok(self.lend_blob(blob, offset, length).await?.to_vec())
    }

    fn slice(
        &mut self,
        blob: Resource<Bytes>,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Resource<Bytes>> {
        let blob = self.table.get(&blob)?;
        let part = blob.slice(window(blob, offset, length));
        Ok(self.table.push(part)?)
    }

    /// Aligned bytes stay where they are. They count as if they were copied.
    async fn tensor(
        &mut self,
        blob: Resource<Bytes>,
        dtype: tensors::wit::Dtype,
        shape: Vec<u32>,
    ) -> wasmtime::Result<tensors::Created> {
        let bytes = self.table.get(&blob)?.clone();
        if let Err(error) = self.reserve_tensor(shape.len(), bytes.len()).await? {
            return Ok(Err(error));
        }
        let dtype = tensors::dtype_of(dtype);
        let buffer = self.pool.adopt(bytes, dtype.size_bytes().unwrap_or(1));
        let shape = shape.iter().map(|dimension| *dimension as usize).collect();
        self.finish_tensor(dtype, shape, buffer)
    }

    async fn from_bytes(&mut self, data: Vec<u8>) -> wasmtime::Result<Resource<Bytes>> {
        self.before_making(data.len(), data.len()).await?;
        Ok(self.table.push(Bytes::from(data))?)
    }

    async fn from_base64(&mut self, text: String) -> wasmtime::Result<Decoded> {
        self.before_making(text.len(), base64::bytes_max(text.len())).await?;
        let decoded = decode(self, &text)?;
        self.keep_decoded(decoded)
    }

    fn drop(&mut self, blob: Resource<Bytes>) -> wasmtime::Result<()> {
        self.table.delete(blob)?;
        Ok(())
    }
}
