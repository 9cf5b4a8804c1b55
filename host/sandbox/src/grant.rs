//! The grant of one call. Each capability makes its per-call state from it.

use std::sync::{Arc, OnceLock};

use gristmill_core::{CallUsage, PluginLimits};

use crate::account::Account;
use crate::assets::Assets;
use crate::lines::Lines;
use crate::model_runs::ModelRuns;
use crate::outgoing::TenantOutgoing;
use crate::stores::TenantStores;

/// State that a capability keeps for one call. A reused instance gets a new state for each call.
pub(crate) trait PerCall: Sized {
    /// The state of an instance's first call.
    fn grant(grant: &Grant<'_>) -> Self;

    /// The call has ended; `failed` says that it gave no answer.
    fn end(&mut self, _failed: bool) {}

    /// The state of the instance's next call.
    fn renew(&mut self, grant: &Grant<'_>) {
        *self = Self::grant(grant);
    }
}

/// The limits of a call, and the account that it counts against.
#[derive(Clone, Copy)]
pub struct Grant<'a> {
    /// The limits of this call.
    pub limits: &'a PluginLimits,
    /// The owner's account, which the permits and the memory of the call count against.
    pub account: &'a Account,
    /// Where the call's lines go, besides the host's log.
    pub lines: Option<Lines<'a>>,
    /// Gets the call's figures when the call ends, even if it fails.
    pub usage: Option<&'a OnceLock<CallUsage>>,
    /// Takes the runs of models that the call asks for. None if it may run none.
    pub models: Option<&'a ModelRuns>,
    /// The other systems that the call may ask. None if it may ask none.
    pub systems: Option<GrantedSystems<'a>>,
    /// The files that the call may read. None if it may read none.
    pub assets: Option<&'a Assets>,
}

impl<'a> Grant<'a> {
    /// A call within these limits, which has lines in the host's log alone, runs no models, asks no
    /// other systems and reads no files.
    pub fn new(limits: &'a PluginLimits, account: &'a Account) -> Self {
        Self {
            limits,
            account,
            lines: None,
            usage: None,
            models: None,
            systems: None,
            assets: None,
        }
    }
}

/// The other systems that a call may ask.
#[derive(Clone, Copy)]
pub struct GrantedSystems<'a> {
    /// The stores of its tenant. None if it may use none.
    pub stores: Option<&'a Arc<TenantStores>>,
    /// The services to which it may send HTTP requests. None if it may send none.
    pub outgoing: Option<&'a Arc<TenantOutgoing>>,
    /// Whether the call belongs to a trial, not to a client's request. Its changes of stores are
    /// answered as done without being done, and it sends only requests that change nothing.
    pub is_trial: bool,
}
