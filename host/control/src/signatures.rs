//! Finding out who signed the plugins of a change, before its release is planned: a signature takes
//! time to check, one over a file the time to read the file.
//!
//! Invariant: a file is read only for a signature over it, of a tenant that has signers, and one
//! after the other. The first that does not count ends it, so nobody without a key makes the
//! server read and hash one file a thousand times.

use bytes::Bytes;
use gristmill_core::Digest;
use gristmill_state::{AskedChange, Desired, PluginSignature, StateError, signers_of};
use gristmill_store::{Received, Store};
use tokio::task::spawn_blocking;

use crate::error::ControlError;
use crate::load::blob::{read_blob, read_upload};
use crate::load::error::LoadError;

/// Where the bytes of the plugins are.
#[derive(Clone, Copy)]
pub(crate) enum FileBytes<'a> {
    /// The only one has just arrived.
    Upload(&'a Received),
    /// The store has them.
    Stored(&'a Store),
}

/// Find the keys that made the signatures, among those that the tenants have after the changes. A
/// plugin without a signature is left as it is: the plan of the release refuses it.
///
/// # Errors
/// A signature is for another file or of another key, or the file cannot be read. The place of the
/// change is named.
pub(crate) async fn find_signers(
    desired: &Desired,
    changes: &mut [AskedChange],
    files: FileBytes<'_>,
) -> Result<(), (usize, ControlError)> {
    for index in 0..changes.len() {
        let AskedChange::PutPlugin { tenant, plugin, digest, signature: Some(signature) } =
            &changes[index]
        else {
            continue;
        };
        let (tenant, plugin, digest) = (tenant.clone(), plugin.clone(), *digest);
        let signers = signers_of(desired, changes, &tenant);
        if signers.is_empty() {
            continue;
        }
        let mut found: PluginSignature = (**signature).clone();
        let bytes = match found.is_of_file() {
            true => {
                let read = files.read(digest).await;
                read.map_err(|error| (index, ControlError::plugin(&plugin, error.into())))?
            }
            false => Bytes::new(),
        };
        let finding = spawn_blocking(move || {
            let outcome = found.find_signers(&signers, digest, &bytes);
            outcome.map(|()| found)
        });
        let outcome = finding.await.map_err(|lost| {
            let (doing, cause) = ("checked a signature", lost.to_string());
            (index, ControlError::Internal { doing, cause })
        })?;
        let found =
            outcome.map_err(|why| (index, StateError::unsigned(&tenant, &plugin, why).into()))?;
        if let AskedChange::PutPlugin { signature, .. } = &mut changes[index] {
            *signature = Some(found.into());
        }
    }
    Ok(())
}

impl FileBytes<'_> {
    async fn read(self, digest: Digest) -> Result<Bytes, LoadError> {
        match self {
            Self::Upload(file) => read_upload(file).await,
            Self::Stored(store) => read_blob(store, digest).await,
        }
    }
}
