//! Names and tenants for the tests of several files.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use gristmill_core::{ByteBudget, Name};
use gristmill_sandbox::Account;
use gristmill_snapshot::{Access, QuotaLimits, Tenant, TenantQuota};

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// A tenant with nothing.
pub(crate) fn tenant(access: Access) -> Tenant {
    let bytes = ByteBudget::new(1 << 20);
    let calls = Account::new(1, 1, bytes.clone());
    Tenant {
        access,
        cors: None,
        has_try_page: false,
        models: BTreeMap::new(),
        weight: 1,
        keeps_apart: false,
        quota: Arc::new(TenantQuota::new(calls, bytes)),
        limits: QuotaLimits::default(),
        default_pipeline: None,
        pipelines: HashMap::new(),
        plugins: Default::default(),
        brought: Default::default(),
        assets: Default::default(),
    }
}
