//! How a pipeline's plugin instances are used again: the part `instance_reuse` of its document.

pub(crate) mod forms;

use std::time::Duration;

use gristmill_sandbox::{Reuse, TenantReuse};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::release::document::{Document, Faults};

const MODES: [(&str, ReuseMode); 3] =
    [("none", ReuseMode::None), ("request", ReuseMode::Request), ("tenant", ReuseMode::Tenant)];

/// How plugin instances are used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReuseMode {
    /// Each call has a fresh instance.
    #[default]
    None,
    /// Both calls of a request have one instance, if one plugin does both.
    Request,
    /// Instances stay and serve later requests of the pipeline.
    Tenant,
}

/// The mode, and for the mode `tenant` its bounds. A bound that is not given is the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InstanceReuse {
    /// Which calls share an instance.
    #[schema(required)]
    pub mode: ReuseMode,
    /// The most calls that one instance serves.
    #[schema(minimum = 1, maximum = 1_000_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_count: Option<u32>,
    /// The time after which an instance that serves no call is dropped.
    #[schema(minimum = 1, maximum = 3_600_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// The most instances of one plugin that are kept while they serve no call.
    #[schema(minimum = 1, maximum = 64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_idle: Option<u32>,
}

impl InstanceReuse {
    /// The value of the key `instance_reuse`: the mode, or an object with the mode and its bounds.
    pub fn read(document: &mut Document) -> Self {
        const KEY: &str = "instance_reuse";
        let keys = match document.value(KEY) {
            None => return Self::default(),
            Some(Value::Object(keys)) => keys,
            Some(mode) => Map::from_iter([("mode".to_owned(), mode)]),
        };
        document.inside(format!("{KEY}."), keys, |document| Self {
            mode: {
                let mode = document.one_of("mode", &MODES);
                document.require("mode", mode).unwrap_or_default()
            },
            max_count: document.whole("max_count"),
            idle_ms: document.whole("idle_ms"),
            max_idle: document.whole("max_idle"),
        })
    }

    /// Add a fault for each bound that is out of its range, or that the mode does not have.
    pub fn check(&self, faults: &mut Faults) {
        let bounds = [
            ("max_count", self.max_count.map(u64::from), 1..=1_000_000),
            ("idle_ms", self.idle_ms, 1..=3_600_000),
            ("max_idle", self.max_idle.map(u64::from), 1..=64),
        ];
        for (key, value, range) in bounds {
            let (key, Some(value)) = (format!("instance_reuse.{key}"), value) else { continue };
            if self.mode == ReuseMode::Tenant {
                faults.within(&key, value, range);
            } else if !faults.has("instance_reuse.mode") {
                faults.add(key.clone(), format!("{key} is {value}: only the mode tenant has it"));
            }
        }
    }

    /// The same for the sandbox.
    pub fn resolve(&self) -> Reuse {
        let default = TenantReuse::default();
        match self.mode {
            ReuseMode::None => Reuse::None,
            ReuseMode::Request => Reuse::Request,
            ReuseMode::Tenant => Reuse::Tenant(TenantReuse {
                max_count: self.max_count.unwrap_or(default.max_count),
                idle: self.idle_ms.map_or(default.idle, Duration::from_millis),
                max_idle: self.max_idle.map_or(default.max_idle, |most| most as usize),
            }),
        }
    }
}
