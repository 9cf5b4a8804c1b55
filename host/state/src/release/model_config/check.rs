//! The ranges of a model's configuration.

use std::ops::RangeInclusive;

use super::{padding, tensors};
use crate::release::document::Faults;
use crate::release::model_config::{
    BatchingSpec, ModelConfig, ProviderName, QueuePolicySpec, SizeSpec,
};
use crate::release::version_policy::MODEL_VERSIONS_MAX;

/// Maximum priority levels.
const LEVELS_MAX: u32 = 64;

/// Maximum rows of a batch, and the most rows and bytes in a queue.
const BATCH_SIZE_MAX: u64 = 65_536;
const ROWS_MAX: u64 = 10_000_000;
const BYTES_MAX: u64 = 1 << 40;

/// Maximum batch sizes that instances run when they are loaded.
const WARM_UP_MAX: usize = 16;

/// Maximum allowed batch sizes.
const ALLOWED_MAX: usize = 64;

impl ModelConfig {
    /// All of its faults.
    pub fn faults(&self) -> Faults {
        let mut faults = Faults::default();
        self.check(&mut faults);
        faults
    }

    /// Add its faults to `faults`, without faults that only follow from others.
    pub(super) fn check(&self, faults: &mut Faults) {
        let batch = self.max_batch_size.fixed().map(|size| size as u64);
        within("max_batch_size", self.max_batch_size, 0..=BATCH_SIZE_MAX, faults);
        let most = batch.filter(|_| !faults.has("max_batch_size")).unwrap_or(BATCH_SIZE_MAX).max(1);
        if batch == Some(0)
            && self.batching == BatchingSpec::Declared
            && !faults.has("max_batch_size")
        {
            let text =
                "batching is \"declared\", but max_batch_size is 0, which turns batching off";
            faults.add("batching", text);
        }
        faults.within("batch_proof_ms", self.batch_proof_ms, 100..=600_000);
        for size in &self.preferred_batch_sizes {
            faults.within("preferred_batch_sizes", *size as u64, 1..=most);
        }
        self.check_allowed(most, faults);
        self.check_warm_up(most, faults);
        faults.within("max_queue_delay_us", self.max_queue_delay_us, 0..=60_000_000);
        faults.within("priority_levels", self.priority_levels.into(), 1..=LEVELS_MAX.into());
        let levels = match faults.has("priority_levels") {
            true => LEVELS_MAX,
            false => self.priority_levels,
        };
        let level = self.default_priority_level.into();
        faults.within("default_priority_level", level, 0..=levels.into());
        faults.within("priority_ageing_ms", self.priority_ageing_ms, 1..=3_600_000);
        self.default_queue_policy.check("default_queue_policy", faults);
        for (level, policy) in &self.priority_queue_policies {
            let key = format!("priority_queue_policies.{level}");
            if !(1..=levels).contains(level) {
                let text = format!("{key}: the levels are 1 to {levels}");
                faults.add("priority_queue_policies", text);
            }
            policy.check(&key, faults);
        }
        self.check_queue(faults);
        faults.within("run_grace_ms", self.run_grace_ms, 0..=3_600_000);
        within("instances", self.instances, 1..=64, faults);
        within("threads", self.threads, 1..=256, faults);
        faults.within("inter_op_threads", self.inter_op_threads as u64, 1..=256);
        self.check_providers(faults);
        self.version_policy.check("version_policy", MODEL_VERSIONS_MAX, faults);
        self.check_padding(faults);
        tensors::check(&self.input, &self.output, faults);
    }

    fn check_allowed(&self, most: u64, faults: &mut Faults) {
        let key = "allowed_batch_sizes";
        let sizes = &self.allowed_batch_sizes;
        check_sizes(key, sizes, most, ALLOWED_MAX, faults);
        if let Some(index) = sizes.windows(2).position(|pair| pair[0] >= pair[1]) {
            let (before, size) = (sizes[index], sizes[index + 1]);
            let at = index + 1;
            let text = format!("{key}[{at}] is {size}: must be more than {before}, before it");
            faults.add(key, text);
        } else if let Some(last) = sizes.last().filter(|last| **last as u64 != most)
            && !faults.has(key)
            && self.max_batch_size.fixed().is_some()
            && !faults.has("max_batch_size")
        {
            let text = format!("the last of {key} is {last}: must be max_batch_size, {most}");
            faults.add(key, text);
        }
    }

    fn check_padding(&self, faults: &mut Faults) {
        padding::check(&self.pad, &self.cut, faults);
        let is_off = self.batching == BatchingSpec::Off || self.max_batch_size.fixed() == Some(0);
        if is_off
            && !self.pad.is_empty()
            && !faults.has("max_batch_size")
            && !faults.has("batching")
        {
            let text = "pad is given, but batching is \"off\" (or max_batch_size 0): rows are \
                        padded only to share batches. Remove one of them";
            faults.add("pad", text);
        }
    }

    fn check_warm_up(&self, most: u64, faults: &mut Faults) {
        let (allowed, Some(sizes)) = (&self.allowed_batch_sizes, &self.warm_up) else {
            return;
        };
        check_sizes("warm_up", sizes, most, WARM_UP_MAX, faults);
        if allowed.is_empty() || faults.has("warm_up") {
            return;
        }
        let mut sizes = sizes.iter().enumerate();
        if let Some((index, size)) = sizes.find(|(_, size)| !allowed.contains(size)) {
            let text = format!("warm_up[{index}] is {size}: is not among allowed_batch_sizes");
            faults.add("warm_up", text);
        }
    }

    fn check_queue(&self, faults: &mut Faults) {
        let (rows, bytes) = (self.max_queue_rows as u64, self.max_queue_bytes as u64);
        faults.within("max_queue_rows", rows, 1..=ROWS_MAX);
        faults.within("max_queue_bytes", bytes, 1..=BYTES_MAX);
        let rows_max = if faults.has("max_queue_rows") { ROWS_MAX } else { rows };
        if let Some(max) = self.max_tenant_queue_rows {
            faults.within("max_tenant_queue_rows", max as u64, 1..=rows_max);
        }
        let bytes_max = if faults.has("max_queue_bytes") { BYTES_MAX } else { bytes };
        if let Some(max) = self.max_tenant_queue_bytes {
            faults.within("max_tenant_queue_bytes", max as u64, 1..=bytes_max);
        }
        let sound = !faults.has("max_batch_size") && !faults.has("max_queue_rows");
        if let Some(batch) = self.max_batch_size.fixed()
            && sound
            && self.max_queue_rows < batch
        {
            let text =
                format!("max_queue_rows is {rows}: must be at least max_batch_size, {batch}");
            faults.add("max_queue_rows", text);
        }
    }

    fn check_providers(&self, faults: &mut Faults) {
        let are_read = !faults.has("providers");
        for (index, provider) in self.providers.iter().enumerate() {
            if self.providers[..index].contains(provider) {
                let name = provider.kind().as_str();
                let text = format!("providers[{index}] is {name:?}, which is named twice");
                faults.add("providers", text);
            }
        }
        for provider in self.provider_options.keys() {
            let name = provider.kind().as_str();
            if *provider != ProviderName::Cuda {
                let text = format!("provider_options has {name:?}, which takes no options");
                faults.add("provider_options", text);
            } else if !self.providers.is_empty() && !self.providers.contains(provider) && are_read {
                let text = format!("provider_options has {name:?}, which is not among providers");
                faults.add("provider_options", text);
            }
        }
    }
}

/// Check a size, if it is fixed.
fn within(key: &'static str, size: SizeSpec, range: RangeInclusive<u64>, faults: &mut Faults) {
    if let Some(size) = size.fixed() {
        faults.within(key, size as u64, range);
    }
}

/// Check the sizes of batches in the list `key`.
fn check_sizes(key: &str, sizes: &[usize], most: u64, length_max: usize, faults: &mut Faults) {
    for (index, size) in sizes.iter().enumerate() {
        faults.within(&format!("{key}[{index}]"), *size as u64, 1..=most);
    }
    let length = sizes.len();
    if length > length_max {
        faults.add(key, format!("{key} has {length} sizes: the limit is {length_max}"));
    }
}

impl QueuePolicySpec {
    fn check(&self, at: &str, faults: &mut Faults) {
        let (size, timeout) = (self.max_queue_size as u64, self.default_timeout_us);
        faults.within(&format!("{at}.max_queue_size"), size, 0..=10_000_000);
        faults.within(&format!("{at}.default_timeout_us"), timeout, 0..=3_600_000_000);
    }
}
