//! A candidate of a pipeline: the part `candidate` of its document.
//!
//! What it does not name is as in the pipeline. Either it answers a share of the requests
//! (`traffic_percent`), or it runs as a shadow (`shadow_percent`).

use std::collections::BTreeMap;
use std::time::Duration;

use gristmill_core::Name;
use gristmill_snapshot::AbortBounds;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::release::assets::{AssetNames, read_assets};
use crate::release::document::Document;
use crate::release::named_version::NamedVersion;
use crate::release::program::{ProgramKind, ProgramParts};
use crate::schema::{NamedModelText, NamedVersionText};

/// The requests of a window, if the document names none.
const REQUESTS: u32 = 100;

/// The failures that a window may have, if the document does not say it.
const FAILURE_PERCENT: f64 = 5.0;

/// The tolerance, if the document names none: that of samples.
const TOLERANCE: f64 = 1e-4;

/// The longest name of a header.
const HEADER_BYTES_MAX: usize = 64;

/// A candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Candidate)]
#[serde(deny_unknown_fields)]
pub struct CandidateSpec {
    /// Another plugin for the model's inputs.
    #[schema(value_type = Option<NamedVersionText>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre: Option<NamedVersion>,
    /// Another model.
    #[schema(value_type = Option<NamedModelText>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<NamedVersion>,
    /// Another plugin for the response.
    #[schema(value_type = Option<NamedVersionText>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<NamedVersion>,
    /// Another handler.
    #[schema(value_type = Option<NamedVersionText>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<NamedVersion>,
    /// Other models of the handler, in place of all models of the pipeline: 1 to 16.
    #[schema(value_type = Option<BTreeMap<String, NamedModelText>>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<BTreeMap<Name, NamedVersion>>,
    /// Other settings, in place of all settings of the pipeline.
    #[schema(value_type = Option<Object>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Map<String, Value>>,
    /// Other assets, in place of all assets of the pipeline.
    #[schema(value_type = Option<BTreeMap<String, NamedVersionText>>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assets: Option<AssetNames>,
    /// The share of the requests that it answers.
    #[schema(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_percent: Option<f64>,
    /// The share of the requests that it runs as a shadow.
    #[schema(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow_percent: Option<f64>,
    /// Requests with the same value of this header get the same variant.
    #[schema(max_length = 64, pattern = "^[0-9A-Za-z!#$%&'*+.^_`|~-]+$")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sticky_header: Option<String>,
    /// For a shadow: the largest difference of two numbers that are not whole, as the absolute
    /// difference and as the share of the number.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// The bounds beyond which it is taken away.
    #[schema(value_type = Option<AbortSpec>)]
    #[serde(default, skip_serializing_if = "AbortSpec::is_empty")]
    pub abort: AbortSpec,
}

/// The bounds of a candidate. One that is not given, but for `failure_percent`, does not exist.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = AbortBounds)]
#[serde(deny_unknown_fields, default)]
pub struct AbortSpec {
    /// The candidate's requests in a window.
    #[schema(minimum = 1, maximum = 1_000_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u32>,
    /// The failures in a window.
    #[schema(minimum = 0, maximum = 100)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_percent: Option<f64>,
    /// The time within which 95 % of a window's requests are answered.
    #[schema(minimum = 1, maximum = 3_600_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// The differences in a window.
    #[schema(minimum = 0, maximum = 100)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference_percent: Option<f64>,
}

impl CandidateSpec {
    /// The value of the key `candidate` of a pipeline whose program is of this kind, if that is
    /// known.
    pub fn read(document: &mut Document, kind: Option<ProgramKind>) -> Option<Self> {
        let keys = document.object("candidate")?;
        let read = |document: &mut Document| Self::read_keys(document, kind);
        Some(document.inside("candidate.".into(), keys, read))
    }

    fn read_keys(document: &mut Document, kind: Option<ProgramKind>) -> Self {
        let percent = 0.0..=100.0;
        let ProgramParts { pre, model, post, handler, models } = ProgramParts::read(document);
        let settings = document.object("settings");
        let assets = read_assets(document);
        let traffic_percent = document.number("traffic_percent", &percent);
        let shadow_percent = document.number("shadow_percent", &percent);
        let sticky_header = read_header(document);
        let tolerance = document.number("tolerance", &(0.0..=1e9));
        let abort = document.nested("abort", |document| AbortSpec {
            requests: document.whole("requests"),
            failure_percent: document.number("failure_percent", &percent),
            latency_ms: document.whole("latency_ms"),
            difference_percent: document.number("difference_percent", &percent),
        });
        let spec = Self {
            pre,
            model,
            post,
            handler,
            models,
            settings,
            assets,
            traffic_percent,
            shadow_percent,
            sticky_header,
            tolerance,
            abort,
        };
        spec.check_parts(document, kind);
        spec.check(document);
        spec
    }

    /// Add a fault if it names nothing, or a part of the other kind of program.
    fn check_parts(&self, document: &mut Document, kind: Option<ProgramKind>) {
        let parts = self.parts();
        let is_same = parts.is_empty() && self.settings.is_none() && self.assets.is_none();
        if is_same && !document.has_faults() {
            match kind {
                Some(ProgramKind::Handler) => document.fault(
                    "handler",
                    " is missing: give one of handler, models, settings and assets at least",
                ),
                _ => document.fault(
                    "pre",
                    " is missing: give one of pre, model, post, settings and assets at least",
                ),
            }
        }
        let (other, text) = match kind {
            None => return,
            Some(ProgramKind::Pair) => (
                ProgramKind::Handler,
                " is for a pipeline with a handler: name pre, model, post, settings or assets",
            ),
            Some(ProgramKind::Handler) => (
                ProgramKind::Pair,
                " is for a pipeline without a handler: name handler, models, settings or assets",
            ),
        };
        for key in parts.keys_of(other) {
            document.fault(key, text);
        }
    }

    /// Add a fault for each thing that does not fit the others. A value that could not be read has
    /// a fault already, and is none here.
    fn check(&self, document: &mut Document) {
        match (self.traffic_percent, self.shadow_percent) {
            (Some(_), Some(_)) => {
                document.fault("shadow_percent", " is given beside traffic_percent: give one");
            }
            (None, None) if !document.has_faults() => {
                document.fault("traffic_percent", " is missing: give it or shadow_percent");
            }
            _ => {}
        }
        let is_shadow = self.shadow_percent.is_some();
        let is_traffic = self.traffic_percent.is_some();
        if is_traffic && !is_shadow {
            for (key, is_given) in [
                ("tolerance", self.tolerance.is_some()),
                ("abort.difference_percent", self.abort.difference_percent.is_some()),
            ] {
                if is_given {
                    document.fault(key, " is for a shadow: only its answers are compared");
                }
            }
        }
        if is_shadow && self.abort.latency_ms.is_some() {
            let text = " is for traffic: a shadow waits behind the requests of clients";
            document.fault("abort.latency_ms", text);
        }
        let bounds = [
            ("abort.requests", self.abort.requests.map(u64::from), 1..=1_000_000),
            ("abort.latency_ms", self.abort.latency_ms, 1..=3_600_000),
        ];
        for (key, value, range) in bounds {
            if let Some(value) = value.filter(|value| !range.contains(value)) {
                let (least, most) = (range.start(), range.end());
                document.fault(key, format_args!(" is {value}: must be {least} to {most}"));
            }
        }
    }

    /// The plugins that it names.
    pub fn plugins(&self) -> impl Iterator<Item = &NamedVersion> {
        self.pre.iter().chain(&self.post).chain(&self.handler)
    }

    /// The models that it names.
    pub fn models(&self) -> impl Iterator<Item = &NamedVersion> {
        self.model.iter().chain(self.models.iter().flat_map(BTreeMap::values))
    }

    /// The assets that it names.
    pub fn assets(&self) -> impl Iterator<Item = &NamedVersion> {
        self.assets.iter().flat_map(BTreeMap::values)
    }

    /// The parts of the program that it names.
    pub fn parts(&self) -> ProgramParts {
        ProgramParts {
            pre: self.pre.clone(),
            model: self.model.clone(),
            post: self.post.clone(),
            handler: self.handler.clone(),
            models: self.models.clone(),
        }
    }

    /// Whether it runs as a shadow.
    pub fn is_shadow(&self) -> bool {
        self.shadow_percent.is_some()
    }

    /// The share of the requests that it gets, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.shadow_percent.or(self.traffic_percent).unwrap_or_default() / 100.0
    }

    /// The relative difference of two numbers that counts as equal.
    pub fn tolerance(&self) -> f64 {
        self.tolerance.unwrap_or(TOLERANCE)
    }

    /// Its bounds, with those that are the default.
    pub fn bounds(&self) -> AbortBounds {
        let AbortSpec { requests, failure_percent, latency_ms, difference_percent } = self.abort;
        AbortBounds {
            requests: requests.unwrap_or(REQUESTS),
            failure_percent: Some(failure_percent.unwrap_or(FAILURE_PERCENT)),
            latency: latency_ms.map(Duration::from_millis),
            difference_percent,
        }
    }
}

impl AbortSpec {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The name of a header, in lower case.
fn read_header(document: &mut Document) -> Option<String> {
    const KEY: &str = "sticky_header";
    let text = document.text(KEY)?;
    let Some(name) = header_name(&text) else {
        let shown: String = text.chars().take(80).collect();
        document.fault(KEY, format_args!(" is {shown:?}: must be the name of a header"));
        return None;
    };
    if name == "authorization" {
        document.fault(KEY, " is \"authorization\": a credential is not for this");
        return None;
    }
    Some(name)
}

/// The name of a header in lower case, if the text is one.
pub(super) fn header_name(text: &str) -> Option<String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_name = (1..=HEADER_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_token);
    is_name.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(candidate: Value) -> (Option<CandidateSpec>, Vec<String>) {
        let Value::Object(keys) = json!({ "candidate": candidate }) else { unreachable!() };
        let mut document = Document::new(keys);
        let candidate = CandidateSpec::read(&mut document, Some(ProgramKind::Pair));
        (candidate, document.finish().into_texts())
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let (_, faults) = read(json!({
            "pre": "P", "traffic_percent": 101, "sticky_header": "a b", "mode": 7,
            "abort": { "requests": 0, "failure_percent": -1, "latency_ms": 0 },
        }));
        for named in [
            "candidate.pre: \"P\" is not",
            "candidate.traffic_percent is 101: must be a number from 0 to 100",
            "candidate.sticky_header is \"a b\": must be the name of a header",
            "candidate: unknown key \"mode\"",
            "candidate.abort.failure_percent is -1: must be a number from 0 to 100",
            "candidate.abort.requests is 0: must be 1 to 1000000",
            "candidate.abort.latency_ms is 0: must be 1 to 3600000",
        ] {
            assert!(faults.iter().any(|fault| fault.starts_with(named)), "{named}: {faults:?}");
        }
        assert_eq!(faults.len(), 7, "none that only follows from another: {faults:?}");
    }

    #[test]
    fn a_candidate_differs_in_something_and_has_one_kind_of_share() {
        let fault = |candidate| read(candidate).1.join("; ");
        assert_eq!(
            fault(json!({ "traffic_percent": 1 })),
            "candidate.pre is missing: give one of pre, model, post, settings and assets at least"
        );
        assert_eq!(
            fault(json!({ "pre": "p" })),
            "candidate.traffic_percent is missing: give it or shadow_percent"
        );
        let both = json!({ "pre": "p", "traffic_percent": 1, "shadow_percent": 1 });
        assert!(fault(both).starts_with("candidate.shadow_percent is given beside"));
        let compared = json!({ "pre": "p", "traffic_percent": 1, "tolerance": 0.1 });
        assert!(fault(compared).starts_with("candidate.tolerance is for a shadow"));
        let late = json!({ "pre": "p", "shadow_percent": 1, "abort": { "latency_ms": 5 } });
        assert!(fault(late).starts_with("candidate.abort.latency_ms is for traffic"));
    }

    #[test]
    fn a_document_reads_as_it_was_written() {
        let full = json!({
            "pre": "p", "model": "m", "post": "q", "settings": { "a": 1 }, "shadow_percent": 12.5,
            "sticky_header": "x-user", "tolerance": 0.5,
            "abort": {
                "requests": 7, "failure_percent": 1.0, "difference_percent": 2.5,
            },
        });
        let (candidate, faults) = read(full.clone());
        assert_eq!(faults, [""; 0]);
        let candidate = candidate.unwrap();
        assert_eq!(serde_json::to_value(&candidate).unwrap(), full);
        assert_eq!(serde_json::from_value::<CandidateSpec>(full).unwrap(), candidate);
        assert!(candidate.is_shadow() && candidate.share() == 0.125);
        let (short, faults) = read(json!({ "pre": "p", "traffic_percent": 10 }));
        assert_eq!(faults, [""; 0]);
        let bounds = short.unwrap().bounds();
        assert_eq!((bounds.requests, bounds.failure_percent), (100, Some(5.0)));
        assert_eq!((bounds.latency, bounds.difference_percent), (None, None));
    }
}
