//! The functions of `wasi:io/streams` that wait, in place of those of `wasmtime-wasi`: a call waits
//! for another service here, too.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceTable};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::p2::bindings::io::streams::{
    Host, HostInputStream, HostOutputStream, StreamError,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, StreamResult};

use super::state::CapabilityState;
use crate::call::CallState;
use crate::capability::log;

/// The interface, under the name that `wasmtime-wasi` links.
const STREAMS: &str = "wasi:io/streams@0.2.12";

type Input = Resource<DynInputStream>;
type Output = Resource<DynOutputStream>;

/// Link functions that wait under their names.
macro_rules! link_waiting {
    ($streams:expr, $($name:literal = $method:path, ($($param:ident: $ty:ty),*);)*) => {
        $($streams.func_wrap_async(
            $name,
            |mut store: StoreContextMut<'_, CallState<S>>, ($($param,)*): ($($ty,)*)| {
                Box::new(async move {
                    let state = store.data_mut();
                    let waits = state.waits();
                    let table = state.ctx().table;
                    let outcome = waits.until($method(&mut *table, $($param),*)).await?;
                    Ok((told(table, outcome)?,))
                })
            },
        )?;)*
    };
}

pub(super) fn link<S>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()>
where
    S: AsMut<CapabilityState> + AsMut<log::CapabilityState> + Send + 'static,
{
    let mut streams = linker.instance(STREAMS)?;
    link_waiting! {
        streams,
        "[method]input-stream.blocking-read" =
            HostInputStream::blocking_read, (stream: Input, bytes: u64);
        "[method]input-stream.blocking-skip" =
            HostInputStream::blocking_skip, (stream: Input, bytes: u64);
        "[method]output-stream.blocking-write-and-flush" =
            HostOutputStream::blocking_write_and_flush, (stream: Output, bytes: Vec<u8>);
        "[method]output-stream.blocking-write-zeroes-and-flush" =
            HostOutputStream::blocking_write_zeroes_and_flush, (stream: Output, bytes: u64);
        "[method]output-stream.blocking-flush" =
            HostOutputStream::blocking_flush, (stream: Output);
        "[method]output-stream.blocking-splice" =
            HostOutputStream::blocking_splice, (stream: Output, from: Input, bytes: u64);
    }
    Ok(())
}

/// The outcome as the guest gets it.
fn told<T>(
    table: &mut ResourceTable,
    outcome: StreamResult<T>,
) -> wasmtime::Result<Result<T, StreamError>> {
    match outcome {
        Ok(answer) => Ok(Ok(answer)),
        Err(error) => Ok(Err(table.convert_stream_error(error)?)),
    }
}
