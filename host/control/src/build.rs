//! From the desired state to a snapshot.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use gristmill_core::{Digest, Name, PipelineLimits};
use gristmill_sandbox::Plugin;
use gristmill_snapshot::{
    Access, ModelState, Pipeline, PluginState, Route, Share, Snapshot, Tenant,
};

use crate::at_hand::AtHand;
use crate::desired::{self, Desired};
use crate::fault::{Fault, Subject};
use crate::fit::Wanted;
use crate::loader::Loader;
use crate::release::PipelineSpec;

/// A snapshot, and what of the desired state is not served by it.
pub(crate) struct Built {
    pub(crate) snapshot: Snapshot,
    pub(crate) faults: Vec<Fault>,
}

/// The parts that a snapshot is built from.
pub(crate) struct Building<'a> {
    pub(crate) loader: &'a Loader,
    /// What the desired state names.
    pub(crate) at_hand: &'a AtHand,
    pub(crate) host_limits: &'a PipelineLimits,
}

/// Resolve all that a request would have to look up. Takes no time: what is loaded is at hand.
pub(crate) fn build(building: &Building<'_>, release: u64, desired: &Desired) -> Built {
    let Building { loader, at_hand, host_limits } = *building;
    let mut faults = Vec::new();
    let mut models = BTreeMap::new();
    for (name, model) in &desired.models {
        let served = at_hand.model(name, model);
        if let Err(why) = served.as_ref().map_err(String::clone)
            && !model.unloaded
        {
            faults.push(Fault { subject: Subject::Model(name.clone()), reason: why });
        }
        let (digest, version) = (model.digest, model.version);
        let earlier_versions = model.earlier_versions.clone();
        models.insert(name.clone(), ModelState { digest, version, earlier_versions, served });
    }
    let mut tenants = HashMap::new();
    for (name, tenant) in &desired.tenants {
        let plugins = plugins_of(at_hand, (name, tenant), &mut faults);
        let share = loader.share(name);
        let mut builder =
            TenantBuilder { name, tenant, plugins, models: &models, host_limits, share, loader };
        let (tenant, tenant_faults) = builder.build();
        faults.extend(tenant_faults);
        tenants.insert(name.clone(), tenant);
    }
    let keys = tenants_by_key(desired, &mut faults);
    Built { snapshot: Snapshot { release, tenants, keys, models }, faults }
}

/// The tenant that each key opens; none where it would open two.
fn tenants_by_key(desired: &Desired, faults: &mut Vec<Fault>) -> HashMap<Digest, Name> {
    let mut keys = HashMap::<Digest, Name>::new();
    let mut shared = Vec::new();
    for (name, tenant) in &desired.tenants {
        for key in &tenant.spec.keys {
            let Some(other) = keys.insert(*key, name.clone()).filter(|other| other != name) else {
                continue;
            };
            let other = other.as_str();
            let reason = format!("api_keys: one of them is a key of tenant {other:?}, too");
            faults.push(Fault { subject: Subject::Tenant(name.clone()), reason });
            shared.push(*key);
        }
    }
    keys.retain(|key, _| !shared.contains(key));
    keys
}

fn plugins_of(
    at_hand: &AtHand,
    (tenant, own): (&Name, &desired::Tenant),
    faults: &mut Vec<Fault>,
) -> BTreeMap<Name, PluginState> {
    let mut plugins = BTreeMap::new();
    for (name, digest) in &own.plugins {
        let plugin = at_hand.plugin(*digest);
        if let Err(why) = &plugin {
            let subject = Subject::Plugin { tenant: tenant.clone(), plugin: name.clone() };
            faults.push(Fault { subject, reason: why.clone() });
        }
        plugins.insert(name.clone(), PluginState { digest: *digest, plugin });
    }
    plugins
}

struct TenantBuilder<'a> {
    name: &'a Name,
    tenant: &'a desired::Tenant,
    plugins: BTreeMap<Name, PluginState>,
    models: &'a BTreeMap<Name, ModelState>,
    host_limits: &'a PipelineLimits,
    share: Arc<Share>,
    loader: &'a Loader,
}

impl TenantBuilder<'_> {
    fn build(&mut self) -> (Tenant, Vec<Fault>) {
        let mut faults = Vec::new();
        let mut fault = |pipeline: &Name, why: &str| {
            let subject =
                Subject::Pipeline { tenant: self.name.clone(), pipeline: pipeline.clone() };
            faults.push(Fault { subject, reason: why.to_owned() });
        };
        let mut pipelines = HashMap::new();
        for (name, spec) in &self.tenant.pipelines {
            let pipeline = match self.route(name, spec) {
                Ok(route) => Pipeline::Ready(Arc::new(route)),
                Err(why) => {
                    let why = why.join("; ");
                    fault(name, &why);
                    Pipeline::Unavailable(why)
                }
            };
            pipelines.insert(name.clone(), pipeline);
        }
        let spec = &self.tenant.spec;
        for model in spec.models.iter().filter(|model| !self.models.contains_key(*model)) {
            let reason = format!("models: no model {:?}", model.as_str());
            faults.push(Fault { subject: Subject::Tenant(self.name.clone()), reason });
        }
        let only = || pipelines.keys().next().filter(|_| pipelines.len() == 1).cloned();
        let default_pipeline = spec.default_pipeline.clone().or_else(only);
        let access = if spec.open { Access::Open } else { Access::Keys(spec.keys.clone()) };
        let plugins = std::mem::take(&mut self.plugins);
        let (models, weight) = (spec.models.clone(), spec.weight);
        let share = self.share.clone();
        (Tenant { access, models, weight, share, default_pipeline, pipelines, plugins }, faults)
    }

    /// The pipeline with everything resolved, or everything that is wrong with it.
    fn route(&self, name: &Name, spec: &PipelineSpec) -> Result<Route, Vec<String>> {
        let limits = spec.limits.resolve(self.host_limits);
        let wanted = Wanted {
            pre: Some(&spec.pre),
            model: Some(&spec.model),
            post: Some(&spec.post),
            priority: spec.priority,
            memory_bytes: limits.as_ref().ok().map(|limits| limits.plugin.memory_bytes),
        };
        let mut faults = wanted.faults(&self.plugins, self.models);
        let limits = limits.map_err(|found| faults.extend(found)).ok();
        let served = self.models.get(&spec.model).and_then(|model| model.served.as_ref().ok());
        let model = served.map(|served| served.lane.clone());
        let (pre, post) = (self.plugin(&spec.pre), self.plugin(&spec.post));
        let settings = serde_json::to_string(&spec.settings).unwrap_or_else(|_| "{}".into());
        match (pre, model, post, limits) {
            (Some(pre), Some(model), Some(post), Some(limits)) if faults.is_empty() => Ok(Route {
                tenant: self.name.clone(),
                pipeline: name.clone(),
                pre,
                pre_name: spec.pre.clone(),
                model,
                post,
                post_name: spec.post.clone(),
                settings: settings.into(),
                weight: self.tenant.spec.weight,
                priority: spec.priority,
                limits,
                share: self.share.clone(),
                statistics: self.loader.pipeline_statistics(self.name, name),
            }),
            _ => Err(faults),
        }
    }

    fn plugin(&self, name: &Name) -> Option<Arc<Plugin>> {
        self.plugins.get(name)?.plugin.as_ref().ok().cloned()
    }
}
