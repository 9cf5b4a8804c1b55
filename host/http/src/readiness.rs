//! Whether the server can serve, and why not.
//!
//! Anyone may ask, so that the answer counts what does not serve and names none of it: the admin
//! status does.

use gristmill_core::ErrorCode;
use gristmill_snapshot::{Pipeline, Snapshot};
use serde::Serialize;

use crate::Shutdown;
use crate::problem::Problem;

/// What of a server that is ready does not serve.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Unavailable {
    pub(crate) pipelines: usize,
    pub(crate) models: usize,
}

impl Unavailable {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The server is ready unless it is about to end, or none of what it has can serve. One that has
/// nothing yet is ready.
pub(crate) fn readiness(snapshot: &Snapshot, shutdown: &Shutdown) -> Result<Unavailable, Problem> {
    let not_ready = |detail: String| Err(Problem::new(ErrorCode::Unavailable, detail));
    if shutdown.is_announced() {
        return not_ready("the server is shutting down".into());
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
        match model.served {
            Ok(_) => serves = true,
            Err(_) => unavailable.models += 1,
        }
    }
    if serves || unavailable.is_none() {
        return Ok(unavailable);
    }
    let Unavailable { pipelines, models } = unavailable;
    not_ready(format!(
        "nothing can serve: unavailable are all pipelines ({pipelines}) and all models ({models}); \
         GET /admin/v1/status says why"
    ))
}

#[cfg(test)]
mod tests {
    use gristmill_snapshot::{ModelState, Snapshot};

    use super::{Unavailable, readiness};
    use crate::Shutdown;

    #[test]
    fn a_server_is_ready_until_nothing_serves_or_it_is_to_end() {
        let (mut snapshot, shutdown) = (Snapshot::default(), Shutdown::new());
        assert_eq!(readiness(&snapshot, &shutdown).unwrap(), Unavailable::default());
        let failed = ModelState {
            digest: gristmill_core::Digest::from_bytes([0; 32]),
            version: 1,
            earlier_versions: Vec::new(),
            served: Err("as told".into()),
        };
        snapshot.models.insert("digits".parse().unwrap(), failed);
        let why = readiness(&snapshot, &shutdown).unwrap_err().detail;
        assert!(why.contains("nothing can serve") && !why.contains("digits"), "{why}");
        shutdown.announce();
        let why = readiness(&Snapshot::default(), &shutdown).unwrap_err().detail;
        assert_eq!(why, "the server is shutting down");
    }
}
