//! The grant of one call. Each capability makes its per-call state from it.

use gristmill_core::{Name, PluginLimits};

use crate::account::Account;

/// The limits of a call, and the account that it counts against.
#[derive(Clone, Copy)]
pub struct Grant<'a> {
    /// The limits of this call.
    pub limits: &'a PluginLimits,
    /// The owner's account, which the call's places and memory count against.
    pub account: &'a Account,
    /// The name of the plugin in log lines.
    pub plugin: Option<&'a Name>,
}
