//! The pipelines whose samples must run before a release is made, with all that decides their
//! answers. Pure.
//!
//! Invariants: a pipeline that could not serve before, and that the release does not touch, needs
//! no proof. Releases of other writers and the start need none either: their samples ran when they
//! were made.

use std::sync::Arc;

use gristmill_core::Name;
use gristmill_sandbox::Plugin;
use gristmill_snapshot::{Pipeline, Route, Takes};
use gristmill_state::{NamedVersion, PipelineSpec, Sample, Serving, Tenant};

use crate::samples::variant::Variant;

/// A pipeline that can serve. As long as a change holds it, no other plugin, asset or lane can have
/// the same address.
pub(crate) struct SampleSubject {
    pub(crate) tenant: Name,
    pub(crate) pipeline: Name,
    pub(crate) variant: Variant,
    pub(crate) route: Arc<Route>,
    /// The desired state of its tenant.
    desired_tenant: Arc<Tenant>,
    plugins: Vec<Arc<Plugin>>,
}

impl SampleSubject {
    /// A pipeline of a state, or its candidate that answers requests; none if it cannot serve.
    fn of(state: &Serving, tenant: &Name, pipeline: &Name, variant: Variant) -> Option<Self> {
        let tenant_state = state.desired.tenants.get(tenant)?;
        let serving = state.snapshot.tenants.get(tenant)?;
        let spec = &**tenant_state.pipelines.get(pipeline)?;
        let Pipeline::Ready(route) = serving.pipelines.get(pipeline)? else { return None };
        let promoted = spec.promoted();
        let (route, spec) = match variant {
            Variant::Stable => (route, spec),
            Variant::Candidate => {
                let candidate = route.candidate.as_ref()?;
                // Clients do not get the answers of a shadow.
                let Takes::Traffic = candidate.takes else { return None };
                (candidate.served.as_ref().ok()?, promoted.as_ref()?)
            }
        };
        let plugin = |named: &NamedVersion| {
            let state = serving.plugins.get(&named.name)?;
            state.of_version(named.version)?.as_ref().ok().cloned()
        };
        Some(Self {
            tenant: tenant.clone(),
            pipeline: pipeline.clone(),
            variant,
            route: route.clone(),
            desired_tenant: tenant_state.clone(),
            plugins: spec.program.plugins().map(plugin).collect::<Option<_>>()?,
        })
    }

    fn spec(&self) -> Option<&PipelineSpec> {
        self.desired_tenant.pipelines.get(&self.pipeline).map(|spec| &**spec)
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        self.spec().map_or(&[], |spec| &spec.samples)
    }

    /// Whether its document, its plugins' files, its assets or its models are to be others than
    /// before.
    fn differs_in(&self, before: &Serving, after: &Serving) -> bool {
        let old = before.desired.tenants.get(&self.tenant);
        let (Some(old), Some(spec)) = (old, self.spec()) else { return true };
        if old.pipelines.get(&self.pipeline).is_none_or(|old| **old != *spec) {
            return true;
        }
        let plugin_in = |tenant: &Tenant, NamedVersion { name, version }: &NamedVersion| {
            tenant.plugins.get(name).and_then(|plugin| plugin.file(*version))
        };
        let asset_in = |tenant: &Tenant, NamedVersion { name, version }: &NamedVersion| {
            tenant.assets.get(name).and_then(|asset| asset.file(*version))
        };
        let model_in = |state: &Serving, NamedVersion { name, version }: &NamedVersion| {
            let model = state.desired.models.get(name)?;
            let file = model.file(version.unwrap_or(model.version));
            Some((file, model.config.clone(), model.unloaded))
        };
        spec.plugins().any(|named| plugin_in(old, named) != plugin_in(&self.desired_tenant, named))
            || spec
                .assets()
                .any(|named| asset_in(old, named) != asset_in(&self.desired_tenant, named))
            || spec.models().any(|named| model_in(before, named) != model_in(after, named))
    }

    /// Whether the answers of both come from the same document, plugins, assets and models.
    fn is_same(&self, other: &Self) -> bool {
        (&self.tenant, &self.pipeline, self.variant)
            == (&other.tenant, &other.pipeline, other.variant)
            && self.plugins.iter().map(Arc::as_ptr).eq(other.plugins.iter().map(Arc::as_ptr))
            && self.route.program.has_lanes_of(&other.route.program)
            && self.route.program.has_assets_of(&other.route.program)
            && self.spec() == other.spec()
    }
}

/// The pipelines of the state `after` that have samples, and are not the same as in the state
/// `before` nor as one of `proven`. A pipeline that could not serve before, and that the release
/// does not touch, must not refuse the release: what it needs was loaded for other reasons.
///
/// `after` was built from `before`.
pub(crate) fn unproven(
    before: &Serving,
    after: &Serving,
    proven: &[SampleSubject],
) -> Vec<SampleSubject> {
    let mut unproven = Vec::new();
    for tenant in &after.touched {
        let Some(tenant_state) = after.desired.tenants.get(tenant) else { continue };
        let new = after.snapshot.tenants.get(tenant);
        let old = before.snapshot.tenants.get(tenant);
        if old.zip(new).is_some_and(|(old, new)| Arc::ptr_eq(old, new)) {
            continue;
        }
        for (pipeline, _) in
            tenant_state.pipelines.iter().filter(|(_, spec)| !spec.samples.is_empty())
        {
            for variant in [Variant::Stable, Variant::Candidate] {
                let Some(subject) = SampleSubject::of(after, tenant, pipeline, variant) else {
                    continue;
                };
                let served = SampleSubject::of(before, tenant, pipeline, variant);
                let is_touched = served.is_some() || subject.differs_in(before, after);
                if is_touched && !served.iter().chain(proven).any(|other| other.is_same(&subject)) {
                    unproven.push(subject);
                }
            }
        }
    }
    unproven
}
