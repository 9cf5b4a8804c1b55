//! Why a key of a tenant is neither put nor deleted.

use gristmill_core::Name;

use crate::release::tenant::KEYS_MAX;

/// Why a key of a tenant is neither put nor deleted.
#[derive(Debug, thiserror::Error)]
pub enum KeyConflict {
    /// The tenant takes calls without a key.
    #[error("tenant {:?} is open, so it has no keys: put the tenant with \"api_keys\" first", .0.as_str())]
    Open(Name),
    /// The tenant has as many keys as it may.
    #[error("tenant {:?} has {KEYS_MAX} keys, the limit: delete one first", .0.as_str())]
    TooMany(Name),
    /// Without the key nobody could call the tenant.
    #[error(
        "key {:?} is the only one of tenant {:?}: put another key first, or make the tenant open",
        .key.as_str(), .tenant.as_str()
    )]
    Only {
        /// The tenant.
        tenant: Name,
        /// The key.
        key: Name,
    },
}
