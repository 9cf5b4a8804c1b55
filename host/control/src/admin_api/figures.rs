//! The figures of the control plane and of the plugins' sandbox, for metrics.

use std::sync::Arc;
use std::time::Duration;

use gristmill_metrics::usage::UsageStore;
use gristmill_metrics::{Distribution, LabelSlots};
use gristmill_sandbox::Instances;

use crate::admin_api::Control;

/// The figures of the control plane at one moment.
#[derive(Clone, Debug)]
pub struct ControlFigures {
    /// How long it took to put each release in force, in seconds.
    pub swaps: Distribution,
    /// How long it took to build each snapshot, in seconds.
    pub builds: Distribution,
    /// How long it took to compile each plugin, in seconds.
    pub compiles: Distribution,
    /// The instances of plugins.
    pub instances: Instances,
    /// The time since this server last found that it serves the newest release. None if the store
    /// is this server's alone.
    pub lag: Option<Duration>,
}

impl Control {
    /// The figures now.
    pub fn figures(&self) -> ControlFigures {
        ControlFigures {
            swaps: self.releases.publisher.swaps().get(),
            builds: self.releases.builds.get(),
            compiles: self.sandbox.compiles().get(),
            instances: self.sandbox.instances(),
            lag: self.replicas.as_ref().map(|replicas| replicas.lag()),
        }
    }

    /// The bytes that the memories of plugin instances that ended keep for later ones.
    pub fn plugin_memory_bytes(&self) -> usize {
        self.sandbox.retained_bytes()
    }

    /// The slots for figures of pipelines in all detail.
    pub fn label_slots(&self) -> &LabelSlots {
        &self.figures.label_slots
    }

    /// The usage of all tenants.
    pub fn usage(&self) -> &Arc<UsageStore> {
        &self.figures.usage
    }
}
