//! `types`: blobs.

use bytes::Bytes;
use wasmtime::component::Resource;

use super::window;
use crate::bindings::types::{Host, HostBlob};
use crate::call::CallState;

impl Host for CallState {}

impl HostBlob for CallState {
    fn len(&mut self, blob: Resource<Bytes>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&blob)?.len() as u64)
    }

    fn read(
        &mut self,
        blob: Resource<Bytes>,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Vec<u8>> {
        Ok(window(self.table.get(&blob)?, offset, length).to_vec())
    }

    fn drop(&mut self, blob: Resource<Bytes>) -> wasmtime::Result<()> {
        self.table.delete(blob)?;
        Ok(())
    }
}
