//! Whether the server can serve, and if not, why.
//!
//! Anyone may ask. So the answer counts the parts that do not serve, but does not name them; the
//! admin status names them.

use std::error::Error;
use std::fmt;

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

/// Why a server is not ready: all reasons.
#[derive(Debug, PartialEq, Eq)]
pub struct NotReady {
    /// The shutdown has begun.
    pub is_shutting_down: bool,
    /// Nothing that is configured can serve.
    pub nothing_serves: Option<Unavailable>,
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_shutting_down {
            f.write_str("the server is shutting down")?;
        }
        let Some(Unavailable { pipelines, models }) = &self.nothing_serves else { return Ok(()) };
        if self.is_shutting_down {
            f.write_str("; ")?;
        }
        write!(
            f,
            "nothing can serve: all pipelines ({pipelines}) and all models ({models}) are \
             unavailable; GET /admin/v1/status says why"
        )
    }
}

impl Error for NotReady {}

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
/// The server is shutting down, or it has pipelines or models and none of them can serve, or both.
pub fn readiness(snapshot: &Snapshot, is_shutting_down: bool) -> Result<Unavailable, NotReady> {
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
    let is_serving = serves || unavailable.is_none();
    if is_serving && !is_shutting_down {
        return Ok(unavailable);
    }
    Err(NotReady { is_shutting_down, nothing_serves: (!is_serving).then_some(unavailable) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
            notes: Arc::default(),
        };
        snapshot.models.insert("digits".parse().unwrap(), failed);
        let why = readiness(&snapshot, false).unwrap_err().to_string();
        assert!(why.starts_with("nothing can serve") && !why.contains("digits"), "{why}");
        let both = readiness(&snapshot, true).unwrap_err().to_string();
        assert_eq!(both, format!("the server is shutting down; {why}"));
        let only = NotReady { is_shutting_down: true, nothing_serves: None };
        assert_eq!(readiness(&Snapshot::default(), true), Err(only));
    }
}
