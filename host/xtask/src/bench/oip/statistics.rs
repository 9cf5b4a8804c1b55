//! A model's statistics, as `/v2/models/{model}/stats` answers them.

use anyhow::{Context, Result};
use gristmill_client::{Client, block_on};
use serde_json::Value;

use super::scenario::Scenario;
use crate::server::Server;

/// The statistics since the model was loaded, in Triton's form.
pub(super) struct Statistics(Value);

impl Statistics {
    pub(super) fn read(server: &Server, scenario: &Scenario) -> Result<Self> {
        let path = format!("/v2/models/{}/stats", scenario.model);
        let answer = block_on(Client::new(server.url.parse()?).get(&path));
        let answer = answer?.ok().with_context(|| format!("GET {path}"))?;
        Ok(Self(serde_json::from_slice(&answer.body)?))
    }

    /// A number by its path, `inference_stats/success/ns` for example.
    pub(super) fn figure(&self, path: &str) -> Result<f64> {
        let value = self.0.pointer(&format!("/model_stats/0/{path}"));
        value.and_then(Value::as_f64).with_context(|| format!("the statistics have no {path}"))
    }
}
