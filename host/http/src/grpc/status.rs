//! gRPC's notation for errors and times.
//!
//! Invariant: one function maps the codes of errors to the statuses of gRPC.

use std::time::Duration;

use gristmill_core::ErrorCode;
use gristmill_transport::Problem;
use http::header::RETRY_AFTER;
use tonic::{Code, Status};

/// The longest text of an error, in bytes. Clients refuse trailers of more than a few KiB.
const MESSAGE_BYTES_MAX: usize = 2 << 10;

/// A timeout in gRPC's notation: up to 8 digits and a unit.
pub(super) fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = digits.len() <= 8 && digits.bytes().all(|digit| digit.is_ascii_digit());
    let value: u64 = digits.parse().ok().filter(|_| is_number)?;
    Some(match unit {
        "H" => Duration::from_secs(value * 3600),
        "M" => Duration::from_secs(value * 60),
        "S" => Duration::from_secs(value),
        "m" => Duration::from_millis(value),
        "u" => Duration::from_micros(value),
        "n" => Duration::from_nanos(value),
        _ => return None,
    })
}

/// The one mapping from problems to gRPC's codes.
pub(super) fn status_of(problem: &Problem) -> Status {
    let code = match problem.code {
        ErrorCode::InvalidRequest
        | ErrorCode::UnsupportedMediaType
        | ErrorCode::Unprocessable
        | ErrorCode::InvalidPlugin
        | ErrorCode::UnsignedPlugin
        | ErrorCode::InvalidModel => Code::InvalidArgument,
        ErrorCode::Unauthenticated => Code::Unauthenticated,
        ErrorCode::Forbidden => Code::PermissionDenied,
        ErrorCode::NotFound | ErrorCode::TenantNotFound | ErrorCode::PipelineNotFound => {
            Code::NotFound
        }
        ErrorCode::Unsupported | ErrorCode::MethodNotAllowed => Code::Unimplemented,
        ErrorCode::RequestTimeout | ErrorCode::PluginTimeout | ErrorCode::DeadlineExceeded => {
            Code::DeadlineExceeded
        }
        ErrorCode::Conflict => Code::Aborted,
        ErrorCode::PreconditionFailed | ErrorCode::SampleFailed => Code::FailedPrecondition,
        ErrorCode::BodyTooLarge
        | ErrorCode::TenantBusy
        | ErrorCode::QuotaExceeded
        | ErrorCode::TooManyFailures
        | ErrorCode::TokenBusy
        | ErrorCode::TooManyReleases => Code::ResourceExhausted,
        ErrorCode::QueueFull | ErrorCode::Overloaded | ErrorCode::Unavailable => Code::Unavailable,
        ErrorCode::PluginFailed
        | ErrorCode::PluginTrapped
        | ErrorCode::PluginOutOfMemory
        | ErrorCode::PluginInvalidOutput
        | ErrorCode::ModelFailed
        | ErrorCode::InsufficientStorage
        | ErrorCode::Internal => Code::Internal,
    };
    // Errors of other kinds were logged where they happened, with their request.
    if problem.code == ErrorCode::Internal {
        tracing::error!(detail = problem.detail, "internal error");
    }
    let detail = &problem.detail;
    let mut status = Status::new(code, &detail[..detail.floor_char_boundary(MESSAGE_BYTES_MAX)]);
    if problem.code == ErrorCode::QuotaExceeded {
        status.metadata_mut().insert(RETRY_AFTER.as_str(), problem.retry_after_s.into());
    }
    status
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gristmill_core::ErrorCode;
    use gristmill_transport::Problem;
    use tonic::Code;

    use super::{MESSAGE_BYTES_MAX, status_of, timeout};

    #[test]
    fn timeouts_have_up_to_eight_digits_and_a_unit() {
        for (text, expected) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("3S", Some(Duration::from_secs(3))),
            ("4m", Some(Duration::from_millis(4))),
            ("5u", Some(Duration::from_micros(5))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("0S", Some(Duration::ZERO)),
            ("123456789n", None),
            ("1", None),
            ("S", None),
            ("", None),
            ("-1S", None),
            ("+1S", None),
            ("1.5S", None),
            ("1s", None),
            ("1 S", None),
            ("1\u{e4}", None),
        ] {
            assert_eq!(timeout(text), expected, "{text:?}");
        }
    }

    #[test]
    fn long_texts_are_cut_where_a_character_ends() {
        let problem = Problem::new(ErrorCode::InvalidRequest, "\u{20ac}".repeat(MESSAGE_BYTES_MAX));
        let status = status_of(&problem);
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!((MESSAGE_BYTES_MAX - 2..=MESSAGE_BYTES_MAX).contains(&status.message().len()));
    }
}
