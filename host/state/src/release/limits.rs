//! The limits of a pipeline's requests: their ranges, and their values on a host.

use std::ops::RangeInclusive;
use std::time::Duration;

use gristmill_core::PipelineLimits;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::release::document::{Document, Faults};

/// The least memory limit for a pipeline's plugin calls.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// The least limit on CPU time. Guests are stopped by a clock that ticks every millisecond.
const CPU_MS_MIN: u64 = 5;

/// What one call across the border may pass, at least.
const PASSED_BYTES_MIN: u64 = 2 << 20;

/// What it may pass besides a tensor.
const BESIDE_TENSOR: u64 = 1 << 20;

/// The limits of a pipeline's requests. A limit that is not given is the host's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Limits)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSpec {
    /// From the request's arrival to its answer.
    #[schema(minimum = 1, maximum = 600_000)]
    pub timeout_ms: Option<u64>,
    /// The request's body.
    #[schema(minimum = 1, maximum = 1_073_741_824)]
    pub body_bytes: Option<usize>,
    /// CPU time of each plugin call; by default 250, and 3000 for a call that decodes a picture.
    #[schema(minimum = 5, maximum = 60_000)]
    pub cpu_ms: Option<u64>,
    /// Linear memory of each plugin call; at most the server's setting `plugin_memory_bytes`.
    #[schema(minimum = 1_048_576)]
    pub memory_bytes: Option<usize>,
    /// The response's body, and the state between the two calls.
    #[schema(minimum = 1)]
    pub response_bytes: Option<usize>,
    /// The bytes that each plugin call may log.
    #[schema(maximum = 16_777_216)]
    pub log_bytes: Option<usize>,
    /// Lists and strings that one call between plugin and host passes, and with 1 MiB less, one
    /// tensor that is not made of a picture; by default 33 MiB, at most that or the server's
    /// setting `plugin_held_bytes`. What is over 33 MiB counts against the tenant's memory during
    /// each call.
    // An older server, which does not know the key, reads documents without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 2_097_152)]
    pub passed_bytes: Option<usize>,
}

/// One limit: the requested value, and its range.
struct Range {
    key: &'static str,
    asked: Option<u64>,
    /// Checked only for new documents. Limits that an older version accepted stay in force.
    min: u64,
    max: u64,
    default: u64,
    /// What sets the maximum, for a text: empty if nothing does.
    set_by: &'static str,
}

impl Range {
    /// Add a fault if the value is not within `min` and the maximum.
    fn check(&self, value: u64, min: u64, faults: &mut Faults) {
        let Self { key, max, set_by, .. } = self;
        faults.within_set_by(&format!("limits.{key}"), value, min..=*max, set_by);
    }
}

/// The range of a limit, for the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRange {
    /// The key under `limits`.
    pub key: &'static str,
    /// The lowest value.
    pub min: u64,
    /// The highest value.
    pub max: u64,
    /// The value of a pipeline that does not set it.
    pub default: u64,
}

/// Every limit that a pipeline may set on such a host.
pub fn limit_ranges(host: &PipelineLimits) -> Vec<LimitRange> {
    let ranges = LimitsSpec::default().ranges(host);
    let range = |Range { key, min, max, default, .. }| LimitRange { key, min, max, default };
    ranges.map(range).into()
}

impl LimitsSpec {
    /// The limits that a pipeline's document gives under `limits`.
    pub fn read(document: &mut Document) -> Self {
        Self {
            timeout_ms: document.whole("timeout_ms"),
            body_bytes: document.whole("body_bytes"),
            cpu_ms: document.whole("cpu_ms"),
            memory_bytes: document.whole("memory_bytes"),
            response_bytes: document.whole("response_bytes"),
            log_bytes: document.whole("log_bytes"),
            passed_bytes: document.whole("passed_bytes"),
        }
    }

    fn ranges(&self, host: &PipelineLimits) -> [Range; 7] {
        let bytes = |value: Option<usize>| value.map(|value| value as u64);
        let millis = |duration: Duration| duration.as_millis() as u64;
        let plugin = &host.plugin;
        let range = |key, asked, bounds: RangeInclusive<u64>, default| {
            let (min, max) = bounds.into_inner();
            Range { key, asked, min, max, default, set_by: "" }
        };
        let memory = plugin.memory_bytes as u64;
        let passed = plugin.hostcall_bytes as u64;
        let passed_max = passed.max(plugin.host_memory_bytes as u64);
        // An answer crosses the border in one call.
        let response_max = self.passed_bytes.map_or(passed, |bytes| bytes as u64);
        [
            range("timeout_ms", self.timeout_ms, 1..=600_000, millis(host.timeout)),
            range("body_bytes", bytes(self.body_bytes), 1..=1 << 30, host.body_bytes as u64),
            range("cpu_ms", self.cpu_ms, CPU_MS_MIN..=60_000, millis(plugin.cpu)),
            Range {
                set_by: " (the server's plugin_memory_bytes)",
                ..range("memory_bytes", bytes(self.memory_bytes), MEMORY_BYTES_MIN..=memory, memory)
            },
            Range {
                set_by: " (limits.passed_bytes)",
                ..range(
                    "response_bytes",
                    bytes(self.response_bytes),
                    1..=response_max,
                    // A pipeline that passes less answers less, too.
                    response_max.min(plugin.response_bytes as u64),
                )
            },
            range("log_bytes", bytes(self.log_bytes), 0..=16 << 20, plugin.log_bytes as u64),
            Range {
                set_by: " (the server's plugin_held_bytes)",
                ..range(
                    "passed_bytes",
                    bytes(self.passed_bytes),
                    PASSED_BYTES_MIN..=passed_max,
                    passed,
                )
            },
        ]
    }

    /// Each limit by its key. One that is not given has the default of `host`.
    pub(crate) fn values(&self, host: &PipelineLimits) -> [(&'static str, u64); 7] {
        self.ranges(host).map(|Range { key, asked, default, .. }| (key, asked.unwrap_or(default)))
    }

    /// Add a fault for each limit that is out of the range that `host` allows.
    pub fn check(&self, host: &PipelineLimits, faults: &mut Faults) {
        for range in self.ranges(host) {
            if let Some(asked) = range.asked {
                range.check(asked, range.min, faults);
            }
        }
    }

    /// Resolve the limits, each at most what `host` allows.
    pub fn resolve(&self, host: &PipelineLimits) -> Result<PipelineLimits, Vec<String>> {
        let mut faults = Faults::default();
        let values = self.ranges(host).map(|range| {
            let value = range.asked.unwrap_or(range.default);
            if value > range.max {
                range.check(value, 1, &mut faults);
            }
            value
        });
        if !faults.is_empty() {
            return Err(faults.into_texts());
        }
        let [timeout, body, cpu, memory, response, log, passed] = values;
        let mut limits = host.clone();
        limits.timeout = Duration::from_millis(timeout);
        limits.body_bytes = body as usize;
        limits.plugin.cpu = Duration::from_millis(cpu);
        if self.cpu_ms.is_some() {
            limits.plugin.cpu_decoding = limits.plugin.cpu;
        }
        limits.plugin.memory_bytes = memory as usize;
        limits.plugin.response_bytes = response as usize;
        limits.plugin.log_bytes = log as usize;
        if self.passed_bytes.is_some() {
            limits.plugin.hostcall_bytes = passed as usize;
            limits.plugin.tensor_bytes = passed.saturating_sub(BESIDE_TENSOR) as usize;
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests;
