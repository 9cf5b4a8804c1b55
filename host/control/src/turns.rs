//! Turns at loading plugins, one for each token whose scope is a few tenants.
//!
//! Plugins are compiled one after the other, in the order in which they come. A token has the
//! plugins of one change in that queue at a time, so however much is uploaded with it, the plugin
//! of another token waits for a few of its plugins at most.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use gristmill_core::Name;
use gristmill_state::TokenScope;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The turns of all tokens.
#[derive(Default)]
pub(crate) struct Turns(Mutex<HashMap<Name, Weak<AsyncMutex<()>>>>);

/// The turn of a change, until it is dropped. An author who may change the whole server needs none.
pub(crate) struct Turn {
    _held: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Wait for a turn. Those of a token come in the order in which they were asked for.
    pub(crate) async fn turn(&self, token_scope: &TokenScope) -> Turn {
        let Some(token) = token_scope.token() else { return Turn { _held: None } };
        let turns = self.of(token);
        Turn { _held: Some(turns.lock_owned().await) }
    }

    fn of(&self, token: &Name) -> Arc<AsyncMutex<()>> {
        let mut tokens = self.0.lock();
        if let Some(turn) = tokens.get(token).and_then(Weak::upgrade) {
            return turn;
        }
        tokens.retain(|_, turns| turns.strong_count() > 0);
        let new = Arc::default();
        tokens.insert(token.clone(), Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::testing::name;

    #[tokio::test]
    async fn a_token_has_one_turn_and_others_do_not_wait_for_it() {
        let turns = Turns::default();
        let token_scope =
            |token: &str| TokenScope::Tenants { token: name(token), tenants: [].into() };
        let (ci, other) = (token_scope("ci"), token_scope("other"));
        let first = turns.turn(&ci).await;
        let mut second = Box::pin(turns.turn(&ci));
        assert!((&mut second).now_or_never().is_none());
        let _others = [turns.turn(&other).await, turns.turn(&TokenScope::Server).await];
        let _another = turns.turn(&TokenScope::Server).await;
        drop(first);
        drop(second.await);
        assert!(turns.turn(&ci).now_or_never().is_some());
        assert_eq!(turns.0.lock().len(), 2);
    }
}
