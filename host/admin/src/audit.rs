//! A line in the log for each call of the admin plane.
//!
//! Each call with a token is a line, at the level debug if programs make it every few seconds.
//! Anyone can make calls without one, so only a few lines are written for them in each interval,
//! with the number of lines that were left out; files that need no token have none. Lines of calls
//! with tokens of tenants' own people have a target that does not count as the server's own, so
//! that a flood of them does not keep out other lines.

use std::net::IpAddr;
use std::time::Instant;

use gristmill_core::ErrorCode;
use gristmill_transport::LineRate;
use http::StatusCode;
use parking_lot::Mutex;

use crate::answer::Noted;
use crate::caller::Caller;
use crate::operation::PREFIX;

/// Maximum bytes of a path that are logged.
const PATH_BYTES_MAX: usize = 256;

/// The target of lines about calls with tokens of tenants' own people. A filter for this crate
/// includes it.
const GUESTS: &str = "gristmill_admin.guests";

/// One call and its answer.
pub(crate) struct AdminCall<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) id: &'a str,
    pub(crate) client: IpAddr,
    /// None if the call has no valid token.
    pub(crate) caller: Option<&'a Caller>,
    pub(crate) status: StatusCode,
    /// The code, if the call was refused.
    pub(crate) code: Option<ErrorCode>,
    pub(crate) noted: Noted,
}

impl AdminCall<'_> {
    /// Whether programs make this call every few seconds, as the console does.
    fn is_watching(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        let parts: Vec<_> = path.strip_prefix(PREFIX).unwrap_or_default().split('/').collect();
        let is_watched = path == "/metrics"
            || matches!(
                parts[..],
                ["metrics" | "status" | "requests"]
                    | ["tenants", _, "logs"]
                    | ["tenants", _, "plugins", _, "logs"]
                    | ["tenants", _, "pipelines", _, "candidate"]
            );
        let is_answered = self.status.is_success() || self.status == StatusCode::NOT_MODIFIED;
        self.method == "GET" && is_answered && is_watched
    }
}

/// Writes the log lines of calls.
#[derive(Default)]
pub(crate) struct Audit {
    refused: Mutex<LineRate>,
}

impl Audit {
    /// Write that a caller tried a key that is somebody else's, as for a wrong token.
    pub(crate) fn write_guess(&self, caller: &Caller, client: IpAddr) {
        if let Some(left_out) = self.refused.lock().take(Instant::now()) {
            let who = caller.name();
            tracing::warn!(%client, who, left_out, "a key that is in use elsewhere was tried");
        }
    }

    pub(crate) fn write(&self, call: &AdminCall<'_>) {
        let AdminCall { method, id, noted, client, .. } = call;
        let status = call.status.as_u16();
        let path = &call.path[..call.path.floor_char_boundary(PATH_BYTES_MAX)];
        let code = call.code.map(ErrorCode::as_str);
        let Some(caller) = call.caller else {
            if code.is_none() {
                return;
            }
            let mut refused = self.refused.lock();
            if let Some(left_out) = refused.take(Instant::now()) {
                tracing::warn!(
                    id,
                    %client,
                    method,
                    path,
                    status,
                    code,
                    left_out,
                    "admin call without a token"
                );
            }
            return;
        };
        let release = noted.release;
        let digest = noted.digest.map(|digest| digest.to_string());
        let who = caller.name();
        if call.is_watching() {
            tracing::debug!(id, %client, method, path, status, who, "admin call");
            return;
        }
        match caller.guest() {
            None => {
                tracing::info!(
                    id, %client, method, path, status, code, release, digest, who, "admin call"
                );
            }
            Some(_) => {
                tracing::info!(
                    target: GUESTS,
                    id, %client, method, path, status, code, release, digest, who, "admin call"
                );
            }
        }
    }
}
