//! `types`: the context and the request of a call, blobs, and the records that the worlds' exports
//! use.

pub(crate) mod base64;
mod bindings;
mod blob;

use std::time::Instant;

use bytes::Bytes;
use gristmill_core::Tensor;
use wasmtime::component::{HasSelf, Linker, Resource, ResourceTableError};

pub use self::bindings::wit;
use super::methods::{link_instead, link_methods};
use super::tensors::wit as tensors;
use crate::call::CallState;
use crate::request::{Context, FormPart, Request, SharedContext};

/// What a field takes besides its texts, in bytes.
const FIELD_BYTES: usize = size_of::<wit::Field>();

const INTERFACE: &str = "gristmill:plugin/types@0.3.0";

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &[INTERFACE];

pub(crate) fn link<S: Send + 'static>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    link_instead(linker, |linker| {
        let mut instance = linker.instance(INTERFACE)?;
        link_methods! { instance,
            async "[method]blob.read" = CallState::lend_blob,
                (blob: Resource<Bytes>, offset: u64, length: u64);
        }
        blob::link(&mut instance)
    })
}

impl<S: Send> wit::Host for CallState<S> {}

/// A call has one context and one request, which are lent to the guest for its length. So their
/// handles carry no number.
impl<S: Send> CallState<S> {
    fn own_context(&self) -> wasmtime::Result<&Context> {
        self.context.as_deref().ok_or_else(|| wasmtime::Error::msg("there is no context here"))
    }

    pub(super) fn own_request(&self) -> wasmtime::Result<&Request> {
        self.request.as_ref().ok_or_else(|| wasmtime::Error::msg("there is no request here"))
    }
}

impl<S: Send> wit::HostContext for CallState<S> {
    fn tenant(&mut self, _: Resource<SharedContext>) -> wasmtime::Result<String> {
        Ok(self.own_context()?.tenant.to_string())
    }

    fn pipeline(&mut self, _: Resource<SharedContext>) -> wasmtime::Result<String> {
        Ok(self.own_context()?.pipeline.to_string())
    }

    fn model(&mut self, _: Resource<SharedContext>) -> wasmtime::Result<String> {
        Ok(self.own_context()?.model.to_string())
    }

    fn request_id(&mut self, _: Resource<SharedContext>) -> wasmtime::Result<String> {
        Ok(self.own_context()?.request_id.to_string())
    }

    async fn settings(&mut self, _: Resource<SharedContext>) -> wasmtime::Result<String> {
        let settings = self.own_context()?.settings.clone();
        self.before_copying(settings.len()).await?;
        Ok(settings.to_string())
    }

    fn time_left(&mut self, _: Resource<SharedContext>) -> wasmtime::Result<u64> {
        let deadline = self.own_context()?.deadline.instant();
        Ok(deadline.saturating_duration_since(Instant::now()).as_millis() as u64)
    }

    fn drop(&mut self, _: Resource<SharedContext>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl<S: Send> wit::HostRequest for CallState<S> {
    fn content_type(&mut self, _: Resource<Request>) -> wasmtime::Result<Option<String>> {
        Ok(self.own_request()?.content_type.clone())
    }

    async fn headers(&mut self, _: Resource<Request>) -> wasmtime::Result<Vec<wit::Field>> {
        self.before_copying(bytes_of(&self.own_request()?.headers)).await?;
        Ok(fields(&self.own_request()?.headers))
    }

    async fn query(&mut self, _: Resource<Request>) -> wasmtime::Result<Vec<wit::Field>> {
        self.before_copying(bytes_of(&self.own_request()?.query)).await?;
        Ok(fields(&self.own_request()?.query))
    }

    fn body(&mut self, _: Resource<Request>) -> wasmtime::Result<Resource<Bytes>> {
        let body = self.own_request()?.body.clone();
        Ok(self.table.push(body)?)
    }

    async fn parts(&mut self, _: Resource<Request>) -> wasmtime::Result<Vec<wit::Part>> {
        self.has_read_parts = true;
        let bytes = self.own_request()?.parts.iter().map(FormPart::head_bytes).sum();
        self.before_copying(bytes).await?;
        let parts = self.own_request()?.parts.clone();
        parts.into_iter().map(|part| Ok(part_of(self, part)?)).collect()
    }

    async fn json_tensor(
        &mut self,
        _: Resource<Request>,
        pointer: String,
        keys: Vec<String>,
        dtype: tensors::Dtype,
    ) -> wasmtime::Result<Result<Resource<Tensor>, wit::JsonError>> {
        CallState::json_tensor(self, &pointer, &keys, dtype).await
    }

    async fn json_blob(
        &mut self,
        _: Resource<Request>,
        pointer: String,
    ) -> wasmtime::Result<Result<Resource<Bytes>, wit::JsonError>> {
        CallState::json_blob(self, &pointer).await
    }

    async fn json_value(
        &mut self,
        _: Resource<Request>,
        pointer: String,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, wit::JsonError>> {
        CallState::json_value(self, &pointer).await
    }

    fn drop(&mut self, _: Resource<Request>) -> wasmtime::Result<()> {
        Ok(())
    }
}

/// The part of a form, with its bytes as a blob in the call's table.
pub(crate) fn part_of<S>(
    state: &mut CallState<S>,
    part: FormPart,
) -> Result<wit::Part, ResourceTableError> {
    let FormPart { name, filename, content_type, body } = part;
    Ok(wit::Part { name, filename, content_type, body: state.table.push(body)? })
}

/// The fields as the contract has them.
pub(crate) fn fields(list: &[(String, String)]) -> Vec<wit::Field> {
    let field =
        |(name, value): &(String, String)| wit::Field { name: name.clone(), value: value.clone() };
    list.iter().map(field).collect()
}

fn bytes_of(list: &[(String, String)]) -> usize {
    list.iter().map(|(name, value)| FIELD_BYTES + name.len() + value.len()).sum()
}
