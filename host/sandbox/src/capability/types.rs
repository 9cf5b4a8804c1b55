//! `types`: blobs, the bytes of a request.

use bytes::Bytes;
use wasmtime::component::{HasSelf, Linker, Resource};

use super::window;
use crate::bindings::types::{self as wit, Host, HostBlob};
use crate::call::CallState;

pub(super) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

impl Host for CallState {}

impl HostBlob for CallState {
    fn len(&mut self, blob: Resource<Bytes>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&blob)?.len() as u64)
    }

    async fn read(
        &mut self,
        blob: Resource<Bytes>,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Vec<u8>> {
        let blob = self.table.get(&blob)?.clone();
        let range = window(&blob, offset, length);
        self.before_copying(range.len()).await?;
        Ok(blob[range].to_vec())
    }

    fn drop(&mut self, blob: Resource<Bytes>) -> wasmtime::Result<()> {
        self.table.delete(blob)?;
        Ok(())
    }
}
