//! Which requests of a pipeline are kept for samples: the part `capture` of its document.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::release::candidate::header_name;
use crate::release::document::Document;

/// The requests that are kept if the document does not say it, and at most.
const REQUESTS: u32 = 8;
const REQUESTS_MAX: u32 = 16;

/// The most headers that are redacted.
const HEADERS_MAX: usize = 16;

/// Which requests are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Capture)]
#[serde(deny_unknown_fields)]
pub struct CaptureSpec {
    /// The share of the requests.
    #[schema(minimum = 0, maximum = 100)]
    pub percent: f64,
    /// How many are kept: the last ones.
    #[schema(minimum = 1, maximum = 16)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_requests: Option<u32>,
    /// The headers whose values are not kept, in lower case.
    #[schema(value_type = Option<Vec<String>>, max_items = 16)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact_headers: Vec<String>,
}

impl CaptureSpec {
    /// The value of the key `capture`.
    pub fn read(document: &mut Document) -> Option<Self> {
        let keys = document.object("capture")?;
        document.inside("capture.".into(), keys, |document| {
            let percent = document.number("percent", &(0.0..=100.0));
            let percent = document.require("percent", percent);
            let max_requests = document.whole("max_requests");
            if let Some(most) = max_requests.filter(|most| !(1..=REQUESTS_MAX).contains(most)) {
                document
                    .fault("max_requests", format_args!(" is {most}: must be 1 to {REQUESTS_MAX}"));
            }
            let redact_headers = document.list("redact_headers", |name| {
                let text = name.as_str().unwrap_or_default();
                header_name(text).ok_or_else(|| " must be the name of a header".to_owned())
            });
            let redact_headers = redact_headers.unwrap_or_default();
            if redact_headers.len() > HEADERS_MAX {
                let text = format!(" has {}: the limit is {HEADERS_MAX}", redact_headers.len());
                document.fault("redact_headers", text);
            }
            Some(Self { percent: percent?, max_requests, redact_headers })
        })
    }

    /// The share of the requests, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.percent / 100.0
    }

    /// How many requests are kept.
    pub fn most(&self) -> usize {
        self.max_requests.unwrap_or(REQUESTS) as usize
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(capture: Value) -> (Option<CaptureSpec>, Vec<String>) {
        let Value::Object(keys) = json!({ "capture": capture }) else { unreachable!() };
        let mut document = Document::new(keys);
        let capture = CaptureSpec::read(&mut document);
        (capture, document.finish().into_texts())
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let (_, faults) = read(json!({
            "max_requests": 17, "redact_headers": ["X-User", "a b", 7], "body": true,
        }));
        for named in [
            "capture.percent is missing",
            "capture.max_requests is 17: must be 1 to 16",
            "capture.redact_headers[1] must be the name of a header",
            "capture.redact_headers[2] must be the name of a header",
            "capture: unknown key \"body\"",
        ] {
            assert!(faults.iter().any(|fault| fault.starts_with(named)), "{named}: {faults:?}");
        }
        assert_eq!(faults.len(), 5, "{faults:?}");
    }

    #[test]
    fn names_of_headers_are_in_lower_case() {
        let (capture, faults) = read(json!({ "percent": 50, "redact_headers": ["X-User"] }));
        assert_eq!(faults, [""; 0]);
        let capture = capture.unwrap();
        assert_eq!((capture.share(), capture.most()), (0.5, 8));
        let written = json!({ "percent": 50.0, "redact_headers": ["x-user"] });
        assert_eq!(serde_json::to_value(capture).unwrap(), written);
    }
}
