//! One tenant of a snapshot.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use gristmill_core::{Name, PipelineLimits};
use gristmill_sandbox::{LineSource, Plugin, PluginPair};
use gristmill_snapshot::{Access, ModelState, Pipeline, PluginState, Route, Tenant, TenantQuota};

use crate::accounts::{Accounts, TenantId};
use crate::desired;
use crate::load::at_hand::AtHand;
use crate::load::error::LoadError;
use crate::plan::fit::Wanted;
use crate::release::document::Faults;
use crate::release::pipeline::PipelineSpec;

/// The tenant's plugins, each loaded or with the reason why it is not. Those that serve in
/// `before`, the tenant of the snapshot before, stay the same: what is at hand may be older.
pub(super) fn plugins_of(
    at_hand: &AtHand,
    own: &desired::Tenant,
    before: Option<&Tenant>,
) -> BTreeMap<Name, PluginState> {
    let state = |(name, own): (&Name, &desired::Plugin)| {
        let digest = own.digest;
        let known = before.into_iter().flat_map(|before| before.plugins.values());
        let known = known.filter(|known| known.digest == digest).map(|known| &known.plugin);
        let plugin = match known.clone().find(|known| known.is_ok()) {
            Some(loaded) => loaded.clone(),
            None => match at_hand.plugin(digest) {
                Some(plugin) => plugin.map_err(|error| error.to_string()),
                None => known.clone().next().cloned().unwrap_or_else(not_loaded),
            },
        };
        (name.clone(), PluginState { digest, plugin })
    };
    own.plugins.iter().map(state).collect()
}

fn not_loaded<T>() -> Result<T, String> {
    Err(LoadError::NotLoaded.to_string())
}

/// The inputs of a tenant.
pub(super) struct TenantBuilder<'a> {
    pub(super) id: &'a TenantId,
    pub(super) own: &'a desired::Tenant,
    pub(super) plugins: BTreeMap<Name, PluginState>,
    pub(super) models: &'a BTreeMap<Name, ModelState>,
    /// The host's own limits.
    pub(super) limits: &'a PipelineLimits,
    pub(super) quota: Arc<TenantQuota>,
    pub(super) accounts: &'a Accounts,
}

impl TenantBuilder<'_> {
    pub(super) fn build(self) -> Tenant {
        let mut pipelines = HashMap::new();
        for (name, spec) in &self.own.pipelines {
            let pipeline = match self.route(name, spec) {
                Ok(route) => Pipeline::Ready(Arc::new(route)),
                Err(faults) => Pipeline::Unavailable(faults.join("; ")),
            };
            pipelines.insert(name.clone(), pipeline);
        }
        let spec = &self.own.spec;
        let keys = || spec.keys.values().copied().collect();
        let only = || pipelines.keys().next().filter(|_| pipelines.len() == 1).cloned();
        Tenant {
            access: if spec.open { Access::Open } else { Access::Keys(keys()) },
            models: spec.models.clone(),
            weight: spec.weight,
            quota: self.quota,
            limits: spec.quota.limits(),
            default_pipeline: spec.default_pipeline.clone().or_else(only),
            pipelines,
            plugins: self.plugins,
        }
    }

    /// The pipeline with everything resolved, or unavailable because of all its faults.
    fn route(&self, name: &Name, spec: &PipelineSpec) -> Result<Route, Vec<String>> {
        let limits = spec.limits.resolve(self.limits);
        let wanted = Wanted {
            pre: Some(&spec.pre),
            model: Some(&spec.model),
            post: Some(&spec.post),
            priority: spec.priority,
            memory_bytes: limits.as_ref().ok().map(|limits| limits.plugin.memory_bytes),
        };
        let mut found = Faults::default();
        wanted.check(&self.plugins, |name| self.models.get(name), &mut found);
        let mut faults = found.into_texts();
        let limits = limits.map_err(|found| faults.extend(found)).ok();
        let served = self.models.get(&spec.model).and_then(|model| model.served.as_ref().ok());
        let model = served.map(|served| served.lane.clone());
        let (pre, post) = (self.plugin(&spec.pre), self.plugin(&spec.post));
        let settings = serde_json::to_string(&spec.settings).unwrap_or_else(|_| "{}".into());
        match (pre, model, post, limits) {
            (Some(pre), Some(model), Some(post), Some(limits)) if faults.is_empty() => Ok(Route {
                tenant: self.id.0.clone(),
                pipeline: name.clone(),
                plugins: PluginPair::new(
                    pre,
                    post,
                    &spec.instance_reuse.resolve(),
                    &self.quota.calls,
                ),
                pre: self.source(name, &spec.pre, "preprocess"),
                model,
                model_name: spec.model.clone(),
                post: self.source(name, &spec.post, "postprocess"),
                settings: settings.into(),
                debug: spec.debug,
                weight: self.own.spec.weight,
                priority: spec.priority,
                limits,
                quota: self.quota.clone(),
                statistics: self.accounts.statistics(self.id, name),
            }),
            _ => Err(faults),
        }
    }

    /// The lines of one call of a pipeline.
    fn source(&self, pipeline: &Name, plugin: &Name, call: &'static str) -> Arc<LineSource> {
        let (plugin, pipeline, kept) = (plugin.clone(), pipeline.clone(), self.quota.lines.clone());
        Arc::new(LineSource { plugin, pipeline, call, kept })
    }

    fn plugin(&self, name: &Name) -> Option<Arc<Plugin>> {
        self.plugins.get(name)?.plugin.as_ref().ok().cloned()
    }
}
