//! The limits on one tenant's use of the host, and the lines that the host keeps for it.

use std::sync::Arc;

use gristmill_core::ByteBudget;
use gristmill_sandbox::{Account, KeptLines};

/// The limits on a tenant's use of the host at the same time. A tenant has the same quota in every
/// snapshot.
pub struct TenantQuota {
    /// Places for plugin calls. Calls beyond them wait for one another, not for those of others.
    pub calls: Account,
    /// Bytes of requests and answers, and of what plugin calls hold.
    pub bytes: Arc<ByteBudget>,
    /// The last lines of its plugins, which are bounded by themselves.
    pub lines: Arc<KeptLines>,
}
