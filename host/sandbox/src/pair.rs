//! The two plugins of a pipeline, and how their instances are used again.
//!
//! Invariants, by mode. A call sees
//! - [`Reuse::None`]: nothing of any other call;
//! - [`Reuse::Request`]: in `postprocess`, what `preprocess` of the same request left; nothing
//!   else;
//! - [`Reuse::Tenant`]: possibly what earlier calls of the same plugin in the same pipeline left;
//!   never anything of another pipeline, tenant or version of the plugin.

use std::sync::Arc;

use crate::error::CallError;
use crate::grant::Grant;
use crate::idle::{IdleGuests, Keep, OneGuest, TenantReuse};
use crate::pace::StaysLong;
use crate::plugin::{Placing, Plugin};
use crate::request::{Context, Prepared, Request, Response, Results};

/// How the instances of a pipeline's plugins are used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// Each call has a fresh instance.
    #[default]
    None,
    /// Both calls of a request have one instance, if one plugin does both.
    Request,
    /// Instances stay and serve later calls of the pipeline.
    Tenant(TenantReuse),
}

/// The two plugins of a pipeline. Pipelines with the same file share a [`Plugin`], but only their
/// own long calls keep them on the threads for long calls.
pub struct PluginPair {
    pre: Arc<Plugin>,
    pre_stays: StaysLong,
    post: Arc<Plugin>,
    post_stays: StaysLong,
    mode: Mode,
}

enum Mode {
    None,
    Request,
    Tenant { pre: Arc<IdleGuests>, post: Arc<IdleGuests> },
}

/// The instance of a request between its two calls, if it stays.
pub struct Kept(Keep);

impl PluginPair {
    /// The plugins of a pipeline whose calls count against `account`.
    pub fn new(
        pre: Arc<Plugin>,
        post: Arc<Plugin>,
        reuse: &Reuse,
        account: &crate::Account,
    ) -> Self {
        let is_one = Arc::ptr_eq(&pre, &post);
        let mode = match reuse {
            Reuse::Request if is_one => Mode::Request,
            Reuse::None | Reuse::Request => Mode::None,
            Reuse::Tenant(reuse) => {
                let first = pre.idle_guests(reuse, account);
                let second = if is_one { first.clone() } else { post.idle_guests(reuse, account) };
                Mode::Tenant { pre: first, post: second }
            }
        };
        let (pre_stays, post_stays) = Default::default();
        Self { pre, pre_stays, post, post_stays, mode }
    }

    /// Call `preprocess`.
    ///
    /// # Errors
    /// Each [`CallError`] concerns only this call: the plugin failed, trapped, went over a limit,
    /// or gave an answer that cannot be used.
    pub async fn preprocess(
        &self,
        context: Arc<Context>,
        request: Request,
        grant: Grant<'_>,
    ) -> Result<(Prepared, Kept), CallError> {
        let keep = match &self.mode {
            Mode::None => Keep::Never,
            Mode::Request => {
                let (long, place) = self.pre.waiting_place(grant.account).await?;
                Keep::ForRequest(Arc::new(OneGuest::new(long, place)))
            }
            Mode::Tenant { pre, .. } => Keep::ForTenant(pre.clone()),
        };
        let placing = Placing { keep: keep.clone(), export: &self.pre_stays };
        let prepared = self.pre.preprocess(context, request, grant, placing).await?;
        Ok((prepared, Kept(keep)))
    }

    /// Call `postprocess` for the request whose `preprocess` returned `kept`.
    ///
    /// # Errors
    /// As for [`preprocess`](Self::preprocess).
    pub async fn postprocess(
        &self,
        kept: Kept,
        context: Arc<Context>,
        results: Results,
        grant: Grant<'_>,
    ) -> Result<Response, CallError> {
        let keep = match (&self.mode, kept.0) {
            (Mode::Tenant { post, .. }, _) => Keep::ForTenant(post.clone()),
            (_, keep) => keep,
        };
        let placing = Placing { keep, export: &self.post_stays };
        self.post.postprocess(context, results, grant, placing).await
    }
}
