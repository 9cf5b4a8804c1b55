//! The two plugins of a pipeline, and how their instances are used again.
//!
//! Invariants, by mode. A call sees
//! - [`Reuse::None`]: nothing of any other call, also in a guest that was rewound (`rewind`);
//! - [`Reuse::Request`]: in `postprocess`, what `preprocess` of the same request left; nothing
//!   else;
//! - [`Reuse::Tenant`]: possibly what earlier calls of the same plugin in the same pipeline left;
//!   never anything of another pipeline, tenant or version of the plugin.

use std::sync::Arc;

use crate::error::CallError;
use crate::grant::Grant;
use crate::idle::{IdleGuests, Keep, OneGuest, TenantReuse};
use crate::kept::{Kept, KeptAccess};
use crate::pace::{Export, Mean};
use crate::plugin::{Placing, Plugin};
use crate::queue::Half;
use crate::request::{Context, Prepared, Request, Response, Results};
use crate::took::Took;

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
    pre_calls: Export,
    post: Arc<Plugin>,
    post_calls: Export,
    mode: Mode,
    /// The time from the begin of a request's first call to the end of its second one.
    takes: Arc<Mean>,
}

enum Mode {
    /// Guests that can be rewound stay.
    None {
        pre: Option<Arc<IdleGuests>>,
        post: Option<Arc<IdleGuests>>,
    },
    Request {
        rewound: Option<Arc<IdleGuests>>,
    },
    Tenant {
        pre: Arc<IdleGuests>,
        post: Arc<IdleGuests>,
    },
}

/// A request between its two calls: its instance, if it stays, and what the first call kept.
pub struct KeptInstance {
    keep: Keep,
    kept: Arc<Kept>,
    took: Took,
}

/// How long guests that were rewound stay, and how many.
pub(crate) fn rewound_stay() -> TenantReuse {
    TenantReuse { max_count: u32::MAX, ..TenantReuse::default() }
}

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
            Reuse::Tenant(reuse) => {
                let first = pre.idle_guests(reuse, account);
                let second = if is_one { first.clone() } else { post.idle_guests(reuse, account) };
                Mode::Tenant { pre: first, post: second }
            }
            Reuse::None | Reuse::Request => {
                let rewound = |plugin: &Plugin| {
                    plugin.is_rewindable().then(|| plugin.idle_guests(&rewound_stay(), account))
                };
                let first = rewound(&pre);
                match (reuse, is_one) {
                    (Reuse::Request, true) => Mode::Request { rewound: first },
                    (_, true) => Mode::None { post: first.clone(), pre: first },
                    (_, false) => Mode::None { pre: first, post: rewound(&post) },
                }
            }
        };
        let (pre_calls, post_calls) = Default::default();
        Self { pre, pre_calls, post, post_calls, mode, takes: Arc::default() }
    }

    /// Call `preprocess`.
    ///
    /// # Errors
    /// [`CallError::TooBusy`] if the request would be answered after its deadline. Each other
    /// [`CallError`] concerns only this call: the plugin failed, trapped, went over a limit, or
    /// gave an answer that cannot be used.
    pub async fn preprocess(
        &self,
        context: Arc<Context>,
        request: Request,
        grant: Grant<'_>,
    ) -> Result<(Prepared, KeptInstance), CallError> {
        let keep = match &self.mode {
            Mode::None { pre, .. } => rewound(pre),
            Mode::Request { rewound } => {
                let one = Arc::new(OneGuest::new(self.pre.long_calls()));
                Keep::ForRequest(one, rewound.clone())
            }
            Mode::Tenant { pre, .. } => Keep::ForTenant(pre.clone()),
        };
        let took = Took::new(&self.takes);
        let kept = Kept::new(grant.account, self.pre.long_calls());
        let placing = Placing {
            grant,
            keep: keep.clone(),
            export: &self.pre_calls,
            half: Half::First,
            latest: took.latest(context.deadline),
            began: Some(&took.began),
            kept: Some(KeptAccess { kept: kept.clone(), half: Half::First }),
        };
        let work = self.pre.preprocess(context, request);
        let prepared = self.pre.begin(work, placing).await?.run().await?;
        Ok((prepared, KeptInstance { keep, kept, took }))
    }

    /// Call `postprocess` for the request whose `preprocess` returned `kept`.
    ///
    /// # Errors
    /// As for [`preprocess`](Self::preprocess).
    pub async fn postprocess(
        &self,
        kept: KeptInstance,
        context: Arc<Context>,
        results: Results,
        grant: Grant<'_>,
    ) -> Result<Response, CallError> {
        let KeptInstance { keep, kept, took } = kept;
        let keep = match (&self.mode, keep) {
            (Mode::Tenant { post, .. }, _) => Keep::ForTenant(post.clone()),
            (Mode::None { post, .. }, _) => rewound(post),
            (_, Keep::ForRequest(one, Some(rewound))) => Keep::Rewound(Some(one), rewound),
            (_, keep) => keep,
        };
        let placing = Placing {
            grant,
            keep,
            export: &self.post_calls,
            half: Half::Second,
            latest: None,
            began: None,
            kept: Some(KeptAccess { kept, half: Half::Second }),
        };
        let work = self.post.postprocess(context, results);
        let response = self.post.begin(work, placing).await?.run().await;
        took.whole();
        response
    }
}

/// What becomes of a fresh guest: it is rewound, if it can be.
pub(crate) fn rewound(idle: &Option<Arc<IdleGuests>>) -> Keep {
    idle.as_ref().map_or(Keep::Never, |idle| Keep::Rewound(None, idle.clone()))
}
