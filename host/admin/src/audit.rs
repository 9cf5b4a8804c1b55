//! A line in the log for each call of the admin plane.
//!
//! Each call with the admin token is a line. Anyone can make calls without the token, so only a few
//! lines are written for them in each interval, with the number of lines that were left out.

use std::time::Instant;

use gristmill_core::ErrorCode;
use gristmill_transport::LineRate;
use http::StatusCode;
use parking_lot::Mutex;

use crate::answer::Noted;
use crate::terms::HOLDER;

/// The most bytes of a path that are logged.
const PATH_BYTES_MAX: usize = 256;

/// One call and its answer.
pub(crate) struct AdminCall<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) id: &'a str,
    pub(crate) status: StatusCode,
    /// The code, if the call was refused.
    pub(crate) code: Option<ErrorCode>,
    pub(crate) noted: Noted,
}

/// Writes the log lines of calls.
#[derive(Default)]
pub(crate) struct Audit {
    refused: Mutex<LineRate>,
}

impl Audit {
    pub(crate) fn write(&self, call: &AdminCall<'_>) {
        let AdminCall { method, id, noted, .. } = call;
        let status = call.status.as_u16();
        let path = &call.path[..call.path.floor_char_boundary(PATH_BYTES_MAX)];
        let code = call.code.map(ErrorCode::as_str);
        if matches!(call.code, Some(ErrorCode::Unauthenticated | ErrorCode::Forbidden)) {
            let mut refused = self.refused.lock();
            if let Some(left_out) = refused.take(Instant::now()) {
                tracing::warn!(
                    id,
                    method,
                    path,
                    status,
                    code,
                    left_out,
                    "admin call without the admin token"
                );
            }
            return;
        }
        let release = noted.release;
        let digest = noted.digest.map(|digest| digest.to_string());
        tracing::info!(id, method, path, status, code, release, digest, who = HOLDER, "admin call");
    }
}
