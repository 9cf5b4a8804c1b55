//! `types`: blobs (the bytes of a request), and the records that the worlds' exports use.

use bytes::Bytes;
use wasmtime::component::{HasSelf, Linker, Resource};

use crate::call::{CallState, window};
use crate::grant::Grant;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        interfaces: "import gristmill:plugin/types@0.1.0;",
        imports: {
            "gristmill:plugin/types.[method]blob.read": async | trappable,
            default: trappable,
        },
        with: { "gristmill:plugin/types.blob": bytes::Bytes },
    });
}

pub use self::bindings::gristmill::plugin::types as wit;

/// The interface's name.
pub(crate) const INTERFACE: &str = "gristmill:plugin/types@0.1.0";

/// Empty: blobs are in the call's table.
pub(crate) struct State;

pub(crate) fn grant(_: &Grant<'_>) -> State {
    State
}

pub(crate) fn link<S: Send + 'static>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

impl<S: Send> wit::Host for CallState<S> {}

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
