//! The header `Server-Timing`: how long the stages of a request took.

use std::fmt::Write;
use std::time::Duration;

use gristmill_core::Stages;
use gristmill_telemetry::stage;
use http::{HeaderName, HeaderValue};

pub(crate) const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// The header's value, in milliseconds. None for a request whose caller was not admitted. A request of a
/// pipeline that began has all of the pipeline's stages, 0 for those that it did not reach.
pub(crate) fn server_timing(stages: &Stages) -> Option<HeaderValue> {
    stages.auth?;
    let Stages { auth, pre, queue, infer, post } = *stages;
    let of_pipeline =
        |stage: Option<Duration>| stage.or_else(|| pre.is_some().then_some(Duration::ZERO));
    let mut text = String::with_capacity(96);
    let mut add = |name: &str, took: Option<Duration>| {
        let Some(took) = took else { return };
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}{name};dur={:.3}", took.as_secs_f64() * 1e3);
    };
    add(stage::AUTH, auth);
    add(stage::PRE, pre);
    add(stage::QUEUE, of_pipeline(queue));
    add(stage::INFER, of_pipeline(infer));
    add(stage::POST, of_pipeline(post));
    HeaderValue::from_str(&text).ok()
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
    }
}
