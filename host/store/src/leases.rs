//! The leases of servers that share a store: small documents that each of them puts again and
//! again, so that the others know that it lives and what it serves.

use bytes::Bytes;
use futures_util::TryStreamExt;
use gristmill_core::Name;
use object_store::path::Path as Key;

use crate::{Store, StoreError};

/// The folder of leases.
const LEASES: &str = "replicas";

/// Maximum leases that are looked at, and the maximum bytes of one.
const LEASES_MAX: usize = 1000;
const LEASE_BYTES_MAX: u64 = 64 << 10;

/// When a lease was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Whose it is.
    pub name: Name,
    /// When it was put, by the clock of the store, in milliseconds since 1970.
    pub put_at_ms: i64,
}

impl Store {
    /// Put the lease of this name in place of the one before.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`]
    pub async fn put_lease(&self, name: &Name, text: Bytes) -> Result<(), StoreError> {
        self.put(&lease_key(name), text).await
    }

    /// All leases, in the order of their names.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`]
    pub async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        let folder = Key::from(LEASES);
        let mut listed = self.objects.list(Some(&folder));
        let mut leases = Vec::new();
        while let Some(file) = listed.try_next().await.map_err(StoreError::unreachable)? {
            let name = file.location.filename().and_then(|name| name.strip_suffix(".json"));
            let name = name.and_then(|name| name.parse().ok());
            // Files that others put there are ignored.
            if let Some(name) = name.filter(|_| file.size <= LEASE_BYTES_MAX) {
                let put_at_ms = file.last_modified.timestamp_millis();
                leases.push(Lease { name, put_at_ms });
            }
            if leases.len() == LEASES_MAX {
                break;
            }
        }
        leases.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(leases)
    }

    /// The lease of this name. None if there is none.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`]
    pub async fn lease(&self, name: &Name) -> Result<Option<Bytes>, StoreError> {
        self.read(&lease_key(name)).await
    }

    /// Remove the lease of this name. It need not exist.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`]
    pub async fn remove_lease(&self, name: &Name) -> Result<(), StoreError> {
        self.delete(&lease_key(name)).await.map(drop)
    }
}

fn lease_key(name: &Name) -> Key {
    Key::from(format!("{LEASES}/{name}.json"))
}
