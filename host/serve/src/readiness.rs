//! Whether the server can serve, and if not, why.
//!
//! Anyone may ask. So the answer counts the parts that do not serve, but does not name them; the
//! admin status names them.

use gristmill_core::{ClientError, ErrorCode};
use gristmill_snapshot::{Pipeline, Snapshot};
use serde::Serialize;

/// The numbers of pipelines and models that do not serve.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unavailable {
    /// How many pipelines.
    pub pipelines: usize,
    /// How many models, in one of their versions or in all.
    pub models: usize,
}

/// The reason why a server is not ready.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// The shutdown has begun.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// Nothing that is configured can serve.
    #[error(
        "nothing can serve: all pipelines ({}) and all models ({}) are unavailable; \
         GET /admin/v1/status says why", .0.pipelines, .0.models
    )]
    NothingServes(Unavailable),
}

impl ClientError for NotReady {
    fn code(&self) -> ErrorCode {
        ErrorCode::Unavailable
    }
}

impl Unavailable {
    /// Whether everything serves.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether the server is ready. A server without pipelines and models is ready.
///
/// # Errors
/// The server is shutting down, or it has pipelines or models and none of them can serve.
pub fn readiness(snapshot: &Snapshot, is_shutting_down: bool) -> Result<Unavailable, NotReady> {
    if is_shutting_down {
        return Err(NotReady::ShuttingDown);
    }
    let mut unavailable = Unavailable::default();
    let mut serves = false;
    for pipeline in snapshot.tenants.values().flat_map(|tenant| tenant.pipelines.values()) {
        match pipeline {
            Pipeline::Ready(_) => serves = true,
            Pipeline::Unavailable(_) => unavailable.pipelines += 1,
        }
    }
    for model in snapshot.models.values() {
        serves |= model.versions().any(|(_, served)| served.is_ok());
        unavailable.models += usize::from(model.versions().any(|(_, served)| served.is_err()));
    }
    if serves || unavailable.is_none() {
        return Ok(unavailable);
    }
    Err(NotReady::NothingServes(unavailable))
}

#[cfg(test)]
mod tests {
    use gristmill_snapshot::{ModelState, Snapshot};

    use super::{NotReady, Unavailable, readiness};

    #[test]
    fn a_server_is_ready_until_nothing_serves_or_it_is_to_end() {
        let mut snapshot = Snapshot::default();
        assert_eq!(readiness(&snapshot, false), Ok(Unavailable::default()));
        let failed = ModelState {
            digest: gristmill_core::Digest::from_bytes([0; 32]),
            version: 1,
            earlier_versions: Vec::new(),
            served: Err("as told".into()),
            kept: [].into(),
        };
        snapshot.models.insert("digits".parse().unwrap(), failed);
        let why = readiness(&snapshot, false).unwrap_err().to_string();
        assert!(why.contains("nothing can serve") && !why.contains("digits"), "{why}");
        assert_eq!(readiness(&Snapshot::default(), true), Err(NotReady::ShuttingDown));
    }
}
