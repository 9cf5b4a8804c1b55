//! `assets`: the files that a call may read.
//!
//! A blob of a file shares the file's bytes, which are held and counted once, outside of any call.
//! A call pays with a handle for each blob.

mod bindings;

use bytes::Bytes;
use wasmtime::component::{HasSelf, Linker, Resource};

pub use self::bindings::wit;
use crate::assets::Assets;
use crate::call::CallState;
use crate::grant::{Grant, PerCall};

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &["gristmill:plugin/assets@0.3.0"];

/// The files that the call may read. Empty if it may read none.
pub(crate) struct CapabilityState(Assets);

impl CapabilityState {
    /// The files, also for capabilities that read them as something.
    pub(super) fn files(&self) -> &Assets {
        &self.0
    }
}

impl PerCall for CapabilityState {
    fn grant(grant: &Grant<'_>) -> Self {
        Self(grant.assets.cloned().unwrap_or_default())
    }

    // An instance that waits for its next call keeps no earlier version of a file.
    fn end(&mut self, _: bool) {
        self.0 = Assets::default();
    }
}

pub(crate) fn link<S: AsMut<CapabilityState> + Send + 'static>(
    linker: &mut Linker<CallState<S>>,
) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

impl<S: AsMut<CapabilityState> + Send> wit::Host for CallState<S> {
    async fn open(
        &mut self,
        name: String,
    ) -> wasmtime::Result<Result<Resource<Bytes>, wit::AssetError>> {
        self.before_looking_at(name.len()).await?;
        let assets = self.states.as_mut().files();
        let opened = match assets.get(&name) {
            Some(asset) => Ok(asset.bytes().clone()),
            None => Err(wit::AssetError::NotFound(assets.not_found(&name))),
        };
        self.check_cpu()?;
        Ok(match opened {
            Ok(bytes) => Ok(self.table.push(bytes)?),
            Err(error) => Err(error),
        })
    }
}
