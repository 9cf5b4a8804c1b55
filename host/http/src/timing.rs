//! The header `Server-Timing`: how long the stages of a request took.

use std::time::Duration;

use gristmill_core::{Stage, Stages};
use http::{HeaderName, HeaderValue};
use smallvec::SmallVec;

pub(crate) const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// The header's text. Most fit in without an allocation.
type Text = SmallVec<[u8; 128]>;

/// The header's value. Times are in milliseconds with three decimals. None if the caller was not
/// admitted. If a pipeline with a preprocessor began to run, all of its stages are named; a stage
/// that was not reached has 0. Of a handler, `queue` and `infer` are the sums over its runs, which
/// may lie side by side. The waits for stores and other services, `lookup`, are parts of the calls
/// of plugins.
pub(crate) fn server_timing(stages: &Stages) -> Option<HeaderValue> {
    stages.auth?;
    let Stages { auth, pre, queue, infer, post, handle, lookup, .. } = *stages;
    let of_pipeline =
        |stage: Option<Duration>| stage.or_else(|| pre.is_some().then_some(Duration::ZERO));
    let mut text = Text::new();
    let mut add = |stage: Stage, took: Option<Duration>| {
        let Some(took) = took else { return };
        if !text.is_empty() {
            text.extend_from_slice(b", ");
        }
        text.extend_from_slice(stage.name().as_bytes());
        text.extend_from_slice(b";dur=");
        push_millis(&mut text, took);
    };
    add(Stage::Auth, auth);
    add(Stage::Pre, pre);
    add(Stage::Queue, of_pipeline(queue));
    add(Stage::Infer, of_pipeline(infer));
    add(Stage::Post, of_pipeline(post));
    add(Stage::Handle, handle);
    add(Stage::Lookup, lookup);
    HeaderValue::from_bytes(&text).ok()
}

/// Append `took` in milliseconds with three decimals, rounded to the nearest microsecond. This runs
/// several times for each request, and `std::fmt` takes longer.
fn push_millis(text: &mut Text, took: Duration) {
    let rest = u64::from((took.subsec_nanos() + 500) / 1000);
    let micros = took.as_secs().saturating_mul(1_000_000).saturating_add(rest);
    text.extend_from_slice(itoa::Buffer::new().format(micros / 1000).as_bytes());
    let digit = |divisor: u64| b'0' + (micros / divisor % 10) as u8;
    text.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_that_were_reached_are_named_in_order() {
        let ms = |ms| Some(Duration::from_millis(ms));
        let mut stages = Stages { queue: ms(2), infer: ms(3), ..Stages::default() };
        assert_eq!(server_timing(&stages), None);
        stages.auth = ms(1);
        let of_model = "auth;dur=1.000, queue;dur=2.000, infer;dur=3.000";
        assert_eq!(server_timing(&stages).unwrap(), of_model);
        let failed = Stages { auth: ms(1), pre: ms(2), ..Stages::default() };
        let all = "auth;dur=1.000, pre;dur=2.000, queue;dur=0.000, infer;dur=0.000, post;dur=0.000";
        assert_eq!(server_timing(&failed).unwrap(), all);
        let handled = Stages { auth: ms(1), infer: ms(3), handle: ms(2), ..Stages::default() };
        let all = "auth;dur=1.000, infer;dur=3.000, handle;dur=2.000";
        assert_eq!(server_timing(&handled).unwrap(), all);
        let looked_up = Stages { auth: ms(1), handle: ms(2), lookup: ms(1), ..Stages::default() };
        let all = "auth;dur=1.000, handle;dur=2.000, lookup;dur=1.000";
        assert_eq!(server_timing(&looked_up).unwrap(), all);
    }

    #[test]
    fn times_are_milliseconds_rounded_to_microseconds() {
        for (nanos, expected) in [
            (0, "0.000"),
            (499, "0.000"),
            (501, "0.001"),
            (9_999, "0.010"),
            (123_456, "0.123"),
            (999_499, "0.999"),
            (999_501, "1.000"),
            (12_345_678, "12.346"),
            (999_999_501, "1000.000"),
            (61_002_003_004, "61002.003"),
            (86_400_000_000_000, "86400000.000"),
        ] {
            let took = Duration::from_nanos(nanos);
            let mut text = Text::new();
            push_millis(&mut text, took);
            assert_eq!(str::from_utf8(&text), Ok(expected));
            // As a float is formatted, except for halves of a microsecond.
            assert_eq!(format!("{:.3}", took.as_secs_f64() * 1e3), expected);
        }
        let mut text = Text::new();
        push_millis(&mut text, Duration::MAX);
        assert_eq!(text.as_slice(), b"18446744073709551.615");
    }
}
