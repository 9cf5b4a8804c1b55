//! A line in the log for each call of the admin plane.
//!
//! What is done with the admin token is logged call by call. Calls without it are anyone's, so their
//! lines are bounded: a few in each interval, and how many were left out.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::ErrorCode;
use http::StatusCode;

use super::answer::Noted;

/// How much of a path is logged.
const PATH_BYTES_MAX: usize = 256;

/// Lines about calls without the admin token, in each interval.
const LINES_MAX: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(10);

/// One call and its answer.
pub(super) struct Call<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) id: &'a str,
    pub(super) status: StatusCode,
    /// Where it was refused.
    pub(super) code: Option<ErrorCode>,
    pub(super) noted: Noted,
}

/// Writes the lines.
#[derive(Default)]
pub(super) struct Audit {
    refused: Mutex<Bounded>,
}

impl Audit {
    pub(super) fn write(&self, call: &Call<'_>) {
        let Call { method, id, noted, .. } = call;
        let status = call.status.as_u16();
        let path = &call.path[..call.path.floor_char_boundary(PATH_BYTES_MAX)];
        let code = call.code.map(ErrorCode::as_str);
        if matches!(call.code, Some(ErrorCode::Unauthenticated | ErrorCode::Forbidden)) {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
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
        let Noted { release, digest } = noted;
        let digest = digest.as_deref();
        tracing::info!(
            id,
            method,
            path,
            status,
            code,
            release,
            digest,
            who = "admin",
            "admin call"
        );
    }
}

/// Lets a few lines through in each interval.
#[derive(Default)]
struct Bounded {
    began: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl Bounded {
    /// Whether a line may be written at `now`; how many were left out since the last one.
    fn take(&mut self, now: Instant) -> Option<u64> {
        if self.began.is_none_or(|began| now.duration_since(began) >= INTERVAL) {
            (self.began, self.written) = (Some(now), 0);
        }
        if self.written == LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_counted_instead() {
        let (mut lines, begun) = (Bounded::default(), Instant::now());
        let written = (0..1000).filter_map(|_| lines.take(begun)).collect::<Vec<_>>();
        assert_eq!(written, [0; LINES_MAX as usize]);
        assert_eq!(lines.take(begun + INTERVAL), Some(1000 - u64::from(LINES_MAX)));
        assert_eq!(lines.take(begun + INTERVAL), Some(0));
    }
}
