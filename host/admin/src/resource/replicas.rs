//! The servers that share the store, in the status and in the answers to changes that wait for
//! them.

use gristmill_control::{KnownReplica, Replica, Waited};
use serde::Serialize;
use serde_json::{Value, json};

use crate::state::State;

/// The part of the status about the shared store.
#[derive(Serialize)]
pub(super) struct ReplicasDocument {
    store: StoreDocument,
    replicas: Vec<ReplicaDocument>,
}

#[derive(Serialize)]
struct StoreDocument {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since_s: Option<f64>,
}

#[derive(Serialize)]
struct ReplicaDocument {
    #[serde(flatten)]
    replica: Replica,
    state: &'static str,
    silent_s: f64,
}

/// None if the store is this server's alone.
pub(super) async fn of(state: &State) -> Option<ReplicasDocument> {
    let read = state.control.replicas().await;
    let trouble = state.control.trouble();
    let (known, unread) = match read {
        Ok(known) => (known?, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let since_s = trouble.as_ref().map(|trouble| trouble.since.elapsed().as_secs_f64());
    let store = StoreDocument {
        state: match (&trouble, &unread) {
            (None, None) => "followed",
            (Some(trouble), _) if !trouble.is_unreachable => "unusable",
            _ => "unreachable",
        },
        reason: trouble.map(|trouble| trouble.reason).or(unread),
        since_s,
    };
    let document = |known: KnownReplica| ReplicaDocument {
        state: if known.is_live { "live" } else { "silent" },
        silent_s: known.silent.as_secs_f64(),
        replica: known.replica,
    };
    Some(ReplicasDocument { store, replicas: known.into_iter().map(document).collect() })
}

/// The document about the servers that a change has waited for. It may be for an author who sees a
/// few tenants only, so it has nothing else about the servers.
pub(crate) fn waited(waited: &Waited) -> Value {
    let behind = waited.behind.iter();
    let behind = behind.map(|replica| json!({ "name": replica.name, "release": replica.release }));
    json!({ "live": waited.live, "behind": behind.collect::<Vec<_>>() })
}
