//! The quota of a tenant: its use of the host over time.

use std::time::Duration;

use gristmill_core::RateLimit;
use gristmill_snapshot::QuotaLimits;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::release::document::{Document, Faults};

/// The greatest number of requests in a second, of a burst, and of rows.
const COUNT_MAX: u64 = 1_000_000;

/// The most CPU time in a minute, in seconds: that of 1000 cores.
const CPU_S_MAX: u64 = 60_000;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// The limits on a tenant's use of the host over time. One that is not given does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Quota)]
#[serde(deny_unknown_fields, default)]
pub struct QuotaSpec {
    /// Requests in a second, on average.
    #[schema(minimum = 1, maximum = 1_000_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_s: Option<u32>,
    /// Requests at once. If it is not given: as many as in a second.
    #[schema(minimum = 1, maximum = 1_000_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// Rows in the queues and the runs of models.
    #[schema(minimum = 1, maximum = 1_000_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_in_flight: Option<u32>,
    /// Seconds of CPU time of its plugins' calls in a minute, on average.
    #[schema(minimum = 1, maximum = 60_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin_cpu_s_per_minute: Option<u32>,
}

impl QuotaSpec {
    /// The quota that a tenant's document gives under `quota`.
    pub fn read(document: &mut Document) -> Self {
        Self {
            requests_per_s: document.whole("requests_per_s"),
            burst: document.whole("burst"),
            rows_in_flight: document.whole("rows_in_flight"),
            plugin_cpu_s_per_minute: document.whole("plugin_cpu_s_per_minute"),
        }
    }

    /// Add a fault for each value that is out of its range, or useless.
    pub fn check(&self, faults: &mut Faults) {
        for (key, value, max) in [
            ("requests_per_s", self.requests_per_s, COUNT_MAX),
            ("burst", self.burst, COUNT_MAX),
            ("rows_in_flight", self.rows_in_flight, COUNT_MAX),
            ("plugin_cpu_s_per_minute", self.plugin_cpu_s_per_minute, CPU_S_MAX),
        ] {
            if let Some(value) = value {
                faults.within(&format!("quota.{key}"), value.into(), 1..=max);
            }
        }
        let rate = "quota.requests_per_s";
        if self.burst.is_some() && self.requests_per_s.is_none() && !faults.has(rate) {
            faults.add(rate, format!("{rate} is missing: quota.burst needs it"));
        }
    }

    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The limits, in the units that they are counted in.
    pub fn limits(&self) -> QuotaLimits {
        let per_minute = |seconds: u32| {
            let nanos = u64::from(seconds) * SECOND.as_nanos() as u64;
            RateLimit { tokens: nanos, every: MINUTE, burst: nanos }
        };
        QuotaLimits {
            requests: self.requests_per_s.map(|tokens| RateLimit {
                tokens: tokens.into(),
                every: SECOND,
                burst: self.burst.unwrap_or(tokens).into(),
            }),
            rows: self.rows_in_flight.map(|rows| rows as usize),
            plugin_cpu: self.plugin_cpu_s_per_minute.map(per_minute),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(quota: Value) -> (QuotaSpec, Vec<String>) {
        let Value::Object(keys) = json!({ "quota": quota }) else { unreachable!() };
        let mut document = Document::new(keys);
        let quota = document.nested("quota", QuotaSpec::read);
        let mut faults = document.finish();
        quota.check(&mut faults);
        (quota, faults.into_texts())
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let (_, faults) = read(json!({
            "requests_per_s": 0, "burst": 1_000_001, "rows_in_flight": "many",
            "plugin_cpu_s_per_minute": 60_001, "cpu": 7,
        }));
        let named = [
            "quota.rows_in_flight is \"many\": must be a whole number from 0 on",
            "quota: unknown key \"cpu\"; known are requests_per_s, burst, rows_in_flight",
            "quota.requests_per_s is 0: must be 1 to 1000000",
            "quota.burst is 1000001: must be 1 to 1000000",
            "quota.plugin_cpu_s_per_minute is 60001: must be 1 to 60000",
        ];
        assert_eq!(faults.len(), named.len(), "{faults:?}");
        for (fault, named) in faults.iter().zip(named) {
            assert!(fault.starts_with(named), "{fault}");
        }
        let (_, faults) = read(json!({ "burst": 7 }));
        assert_eq!(faults, ["quota.requests_per_s is missing: quota.burst needs it"]);
        let (_, faults) = read(json!({ "burst": 7, "requests_per_s": 0.5 }));
        assert_eq!(faults.len(), 1, "none that only follows from another: {faults:?}");
        assert_eq!(read(json!([])).1.len(), 1);
    }

    #[test]
    fn the_limits_follow_the_document() {
        let (quota, faults) = read(json!({ "requests_per_s": 5, "plugin_cpu_s_per_minute": 30 }));
        assert_eq!(faults, [""; 0]);
        let limits = quota.limits();
        let requests = RateLimit { tokens: 5, every: SECOND, burst: 5 };
        let nanos = 30_000_000_000;
        let plugin_cpu = RateLimit { tokens: nanos, every: MINUTE, burst: nanos };
        let (requests, plugin_cpu) = (Some(requests), Some(plugin_cpu));
        assert_eq!(limits, QuotaLimits { requests, rows: None, plugin_cpu });
        assert_eq!(
            serde_json::to_value(&quota).unwrap(),
            json!({
                "requests_per_s": 5, "plugin_cpu_s_per_minute": 30,
            })
        );
        assert_eq!(read(Value::Null), (QuotaSpec::default(), vec![]));
        assert_eq!(QuotaSpec::default().limits(), QuotaLimits::default());
    }
}
