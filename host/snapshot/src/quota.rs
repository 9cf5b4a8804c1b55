//! How much of the host one tenant may use.

use std::sync::Arc;

use gristmill_core::ByteBudget;
use gristmill_sandbox::Account;

/// How much of the host a tenant may use at the same time. One tenant has the same in every
/// snapshot.
pub struct TenantQuota {
    /// Places for plugin calls. Calls beyond them wait for one another, not for those of others.
    pub calls: Account,
    /// Bytes of requests and answers, and of what plugin calls hold.
    pub bytes: Arc<ByteBudget>,
}
