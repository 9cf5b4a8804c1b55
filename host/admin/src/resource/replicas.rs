//! The servers that share the store, in the status.

use gristmill_control::{KnownReplica, Replica};
use serde::Serialize;
use utoipa::ToSchema;

use crate::state::AdminState;

/// The part of the status about the shared store.
#[derive(Serialize, ToSchema)]
pub(super) struct ReplicasDocument {
    store: StoreDocument,
    replicas: Vec<ReplicaDocument>,
}

/// The shared store.
#[derive(Serialize, ToSchema)]
#[schema(as = StoreStatus)]
struct StoreDocument {
    /// `followed`, `unreachable` or `unusable`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// For how long it is not followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    since_s: Option<f64>,
}

/// A server that shares the store.
#[derive(Serialize, ToSchema)]
#[schema(as = ReplicaStatus)]
struct ReplicaDocument {
    #[serde(flatten)]
    replica: Replica,
    /// `live` or `silent`.
    state: &'static str,
    /// How much older its lease is than the newest one.
    silent_s: f64,
}

/// None if the store is this server's alone.
pub(super) async fn of(state: &AdminState) -> Option<ReplicasDocument> {
    let read = state.control.replicas().await;
    let trouble = state.control.trouble();
    let (replicas, unread) = match read {
        Ok(replicas) => (replicas?, None),
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
    let document = |replica: KnownReplica| ReplicaDocument {
        state: if replica.is_live { "live" } else { "silent" },
        silent_s: replica.silent.as_secs_f64(),
        replica: replica.replica,
    };
    Some(ReplicasDocument { store, replicas: replicas.into_iter().map(document).collect() })
}
