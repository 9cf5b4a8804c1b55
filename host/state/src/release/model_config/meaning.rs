//! Turning a model's configuration into the settings of the batcher and the backends.
//!
//! Invariant: loading a model depends only on its file, [`ModelConfig::load_options`] and
//! [`ModelConfig::sizes`]. A change of other settings loads nothing, unless it prefers batches that
//! are larger than the measured maximum.

use std::time::Duration;

use gristmill_backend::{
    BATCH_SIZE_MAX, Batching, GraphOptimization, LoadOptions, ProviderKind, Sizing,
};
use gristmill_batch::{LOST_AFTER, LaneConfig, QueueLimits, QueuePolicy, TimeoutAction};

use gristmill_core::Padding;
use gristmill_snapshot::TensorNotes;

use super::{padding, tensors};
use crate::release::model_config::{
    BatchingSpec, GraphOptimizationSpec, ModelConfig, ProviderName, QueuePolicySpec, SizeSpec,
    Sizes, TimeoutActionSpec,
};

impl ModelConfig {
    /// The sizes that the server may choose.
    pub fn sizes(&self) -> Sizes {
        let Self { max_batch_size, instances, threads, .. } = *self;
        // Other keys that name sizes of batches decide it.
        let named = self.allowed_batch_sizes.last().copied();
        let named = named.or_else(|| {
            let largest = self.preferred_batch_sizes.iter().max().copied();
            largest.filter(|largest| *largest > BATCH_SIZE_MAX)
        });
        let named = named.map_or(SizeSpec::AUTO, SizeSpec::Fixed);
        let max_batch_size = max_batch_size.fixed().map_or(named, SizeSpec::Fixed);
        Sizes { max_batch_size, instances, threads }
    }

    /// The options of the backends. A size that the server chooses is 1.
    pub fn load_options(&self) -> LoadOptions {
        let Sizing { instances, threads, .. } = self.sizes().resolved(None);
        LoadOptions {
            providers: self.providers.iter().map(|name| name.kind()).collect(),
            cuda_options: self
                .provider_options
                .get(&ProviderName::Cuda)
                .cloned()
                .unwrap_or_default(),
            instances,
            threads,
            inter_op_threads: self.inter_op_threads,
            graph_optimization: match self.graph_optimization {
                GraphOptimizationSpec::Disable => GraphOptimization::Disable,
                GraphOptimizationSpec::Basic => GraphOptimization::Basic,
                GraphOptimizationSpec::Extended => GraphOptimization::Extended,
                GraphOptimizationSpec::All => GraphOptimization::All,
            },
            memory_arena: self.memory_arena,
            memory_pattern: self.memory_pattern,
            allowed_batch_sizes: self.allowed_batch_sizes.clone(),
            warm_up: self.warm_up.clone(),
            batching: match self.batching {
                _ if self.max_batch_size.fixed() == Some(0) => Batching::Off,
                BatchingSpec::Proven => Batching::Proven,
                BatchingSpec::Off => Batching::Off,
                BatchingSpec::Declared => Batching::Declared,
            },
            padding: padding::spec(&self.pad, &self.cut),
            trial_time: Duration::from_millis(self.batch_proof_ms),
        }
    }

    /// What it says of inputs and outputs.
    pub fn notes(&self) -> TensorNotes {
        tensors::notes(&self.input, &self.output)
    }

    /// The settings of the batcher. The configuration must have no faults.
    pub fn lane(&self) -> LaneConfig {
        let levels = (1..=self.priority_levels).map(|level| {
            self.priority_queue_policies.get(&level).unwrap_or(&self.default_queue_policy).resolve()
        });
        let default_level = match self.default_priority_level {
            0 => self.priority_levels.div_ceil(2),
            level => level,
        };
        let mut preferred = self.preferred_batch_sizes.clone();
        preferred.sort_unstable();
        preferred.dedup();
        // A tenant may always queue enough rows to fill a batch.
        let max_batch_size = self.sizes().resolved(None).max_batch_size.min(self.max_queue_rows);
        let half = (self.max_queue_rows / 2).max(max_batch_size);
        LaneConfig {
            max_batch_size: max_batch_size.max(1),
            preferred_batch_sizes: preferred,
            allowed_batch_sizes: self.allowed_batch_sizes.clone(),
            // It is proven when the model is loaded.
            padding: Padding::default(),
            max_queue_delay: Duration::from_micros(self.max_queue_delay_us),
            levels: levels.collect(),
            default_level: default_level as usize - 1,
            ageing: Duration::from_millis(self.priority_ageing_ms),
            queue: QueueLimits { rows: self.max_queue_rows, bytes: self.max_queue_bytes },
            tenant_queue: QueueLimits {
                rows: self.max_tenant_queue_rows.unwrap_or(half),
                bytes: self.max_tenant_queue_bytes.unwrap_or(self.max_queue_bytes / 2),
            },
            rows_are_declared: self.batching == BatchingSpec::Declared,
            leads: true,
            run_grace: Duration::from_millis(self.run_grace_ms),
            lost_after: LOST_AFTER,
        }
    }
}

impl ProviderName {
    /// The name of the provider.
    pub fn of(kind: ProviderKind) -> Self {
        match kind {
            ProviderKind::Cuda => Self::Cuda,
            ProviderKind::Cpu => Self::Cpu,
            ProviderKind::Tract => Self::Tract,
        }
    }

    /// The provider.
    pub fn kind(self) -> ProviderKind {
        match self {
            Self::Cuda => ProviderKind::Cuda,
            Self::Cpu => ProviderKind::Cpu,
            Self::Tract => ProviderKind::Tract,
        }
    }
}

impl QueuePolicySpec {
    fn resolve(&self) -> QueuePolicy {
        let timeout = Duration::from_micros(self.default_timeout_us);
        QueuePolicy {
            max_requests: Some(self.max_queue_size).filter(|max| *max > 0),
            timeout: Some(timeout).filter(|timeout| !timeout.is_zero()),
            timeout_action: match self.timeout_action {
                TimeoutActionSpec::Reject => TimeoutAction::Reject,
                TimeoutActionSpec::Delay => TimeoutAction::Delay,
            },
            allow_timeout_override: self.allow_timeout_override,
        }
    }
}
