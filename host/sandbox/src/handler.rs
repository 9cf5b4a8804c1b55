//! The plugin of a pipeline with a handler, and how its instances are used again.
//!
//! Invariant: a call sees nothing of any other call, unless the pipeline reuses instances for its
//! tenant ([`Reuse::Tenant`]). [`Reuse::Request`] means nothing here: a request has one call.

use std::sync::Arc;

use crate::account::Account;
use crate::error::CallError;
use crate::grant::Grant;
use crate::idle::{IdleGuests, Keep};
use crate::pace::{Export, Mean};
use crate::pair::{Reuse, rewound, rewound_stay};
use crate::plugin::{Placing, Plugin};
use crate::queue::Half;
use crate::request::{Context, Request, Response};
use crate::took::Took;

/// The handler of a pipeline.
pub struct HandlerPlugin {
    plugin: Arc<Plugin>,
    calls: Export,
    mode: Mode,
    /// The time from the begin of a call to its end.
    takes: Arc<Mean>,
}

enum Mode {
    /// Guests that can be rewound stay.
    Fresh(Option<Arc<IdleGuests>>),
    Tenant(Arc<IdleGuests>),
}

impl HandlerPlugin {
    /// The handler of a pipeline whose calls count against `account`.
    pub fn new(plugin: Arc<Plugin>, reuse: &Reuse, account: &Account) -> Self {
        let mode = match reuse {
            Reuse::Tenant(reuse) => Mode::Tenant(plugin.idle_guests(reuse, account)),
            Reuse::None | Reuse::Request => {
                let idle = || plugin.idle_guests(&rewound_stay(), account);
                Mode::Fresh(plugin.is_rewindable().then(idle))
            }
        };
        Self { plugin, calls: Export::default(), mode, takes: Arc::default() }
    }

    /// Call `handle`. The grant's `models` takes the runs that it asks for.
    ///
    /// # Errors
    /// [`CallError::TooBusy`] if the request would be answered after its deadline. Each other
    /// [`CallError`] concerns only this call.
    pub async fn handle(
        &self,
        context: Arc<Context>,
        request: Request,
        grant: Grant<'_>,
    ) -> Result<Response, CallError> {
        let keep = match &self.mode {
            Mode::Fresh(idle) => rewound(idle),
            Mode::Tenant(idle) => Keep::ForTenant(idle.clone()),
        };
        let took = Took::new(&self.takes);
        let placing = Placing {
            grant,
            keep,
            export: &self.calls,
            half: Half::First,
            latest: took.latest(context.deadline),
            began: Some(&took.began),
            kept: None,
        };
        let work = self.plugin.handle(context, request);
        let response = self.plugin.begin(work, placing).await?.run().await?;
        took.whole();
        Ok(response)
    }
}
