//! One tenant of a snapshot.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use gristmill_batch::{LAST_PRIORITY, Lane};
use gristmill_core::{Digest, Name, PipelineLimits};
use gristmill_metrics::RequestTarget;
use gristmill_metrics::usage::Counter;
use gristmill_sandbox::{
    Asset, Assets, HandlerPlugin, LineSource, Plugin, PluginPair, TenantOutgoing, TenantStores,
};
use gristmill_snapshot::{
    Access, AssetState, Candidate, Capture, Direct, Evaluation, FileState, Handler, HandlerModel,
    KeptVersion, ModelState, Pair, Pipeline, PluginState, Program, Route, Takes, Tenant,
    TenantQuota,
};
use gristmill_state::{
    BatchWith, CandidateSpec, CaptureSpec, CorsSpec, Faults, NamedVersion, PipelineSpec,
    ProgramSpec, TenantFile, Wanted,
};

use crate::accounts::{Accounts, TenantId};
use crate::load::at_hand::AtHand;
use crate::load::error::{LoadError, Loaded};

/// The tenant's plugins and assets, each version loaded or with the reason why it is not.
pub(super) struct Files {
    pub(super) plugins: BTreeMap<Name, PluginState>,
    /// The files that the plugins bring.
    brought: HashMap<Digest, Arc<Assets>>,
    pub(super) assets: BTreeMap<Name, AssetState>,
}

impl Files {
    /// Those of a tenant. Those that serve in `before`, the tenant of the snapshot before, stay the
    /// same: what is at hand may be older.
    pub(super) fn of(
        at_hand: &AtHand,
        id: &TenantId,
        desired_tenant: &gristmill_state::Tenant,
        before: Option<&Tenant>,
    ) -> Self {
        let gristmill_state::Tenant { plugins, assets, .. } = desired_tenant;
        let (plugins_before, assets_before) =
            (before.map(|tenant| &tenant.plugins), before.map(|tenant| &tenant.assets));
        let plugin = |digest| at_hand.plugin(&(id.clone(), digest));
        let brought = |digest: Digest| {
            let before = before.and_then(|tenant| tenant.brought.get(&digest).cloned());
            let loaded = || plugin(digest)?.ok().map(|plugin| plugin.brought);
            Some((digest, before.or_else(loaded)?))
        };
        let digests = plugins.values().flat_map(TenantFile::versions).map(|(_, digest)| digest);
        Self {
            brought: digests.filter_map(brought).collect(),
            plugins: states_of(plugins, plugins_before, |digest| {
                Some(plugin(digest)?.map(|plugin| plugin.plugin))
            }),
            assets: states_of(assets, assets_before, |digest| at_hand.asset(&(id.clone(), digest))),
        }
    }
}

fn states_of<T>(
    files: &BTreeMap<Name, TenantFile>,
    before: Option<&BTreeMap<Name, FileState<T>>>,
    at_hand: impl Fn(Digest) -> Option<Loaded<Arc<T>>>,
) -> BTreeMap<Name, FileState<T>> {
    let states = before.into_iter().flat_map(BTreeMap::values);
    let mut files_before = HashMap::new();
    for (digest, loaded) in states.flat_map(|state| state.files()) {
        let file = files_before.entry(digest).or_insert(loaded);
        if file.is_err() && loaded.is_ok() {
            *file = loaded;
        }
    }
    let load = |digest: Digest| match files_before.get(&digest) {
        Some(Ok(loaded)) => Ok(loaded.clone()),
        failed => match at_hand(digest) {
            Some(loaded) => loaded.map_err(|error| error.to_string()),
            None => failed.map_or_else(not_loaded, |failed| Result::clone(failed)),
        },
    };
    let state = |(name, file): (&Name, &TenantFile)| {
        let TenantFile { digest, version, kept } = file;
        let kept = kept.iter().map(|(version, digest)| {
            (*version, KeptVersion { digest: *digest, loaded: load(*digest) })
        });
        let (digest, version) = (*digest, *version);
        (name.clone(), FileState { digest, version, newest: load(digest), kept: kept.collect() })
    };
    files.iter().map(state).collect()
}

fn not_loaded<T>() -> Result<T, String> {
    Err(LoadError::NotLoaded.to_string())
}

/// The inputs of a tenant.
pub(super) struct TenantBuilder<'a> {
    pub(super) id: &'a TenantId,
    pub(super) desired_tenant: &'a gristmill_state::Tenant,
    pub(super) files: Files,
    pub(super) models: &'a BTreeMap<Name, ModelState>,
    /// The host's own limits.
    pub(super) limits: &'a PipelineLimits,
    pub(super) quota: Arc<TenantQuota>,
    pub(super) accounts: &'a Accounts,
    /// The number of the release.
    pub(super) release: u64,
    /// The tenant as it was before, with its desired state.
    pub(super) before: Option<(&'a gristmill_state::Tenant, &'a Tenant)>,
}

impl TenantBuilder<'_> {
    pub(super) fn build(self) -> Tenant {
        let mut pipelines = HashMap::new();
        for (name, spec) in &self.desired_tenant.pipelines {
            let pipeline = match self.route(name, spec) {
                Ok(route) => Pipeline::Ready(Arc::new(route)),
                Err(faults) => Pipeline::Unavailable(faults.join("; ")),
            };
            pipelines.insert(name.clone(), pipeline);
        }
        let spec = &self.desired_tenant.spec;
        let keys = || spec.keys.values().copied().collect();
        let direct = |name: &Name| Direct {
            tenant: self.id.0.clone(),
            model: name.clone(),
            figures: self.accounts.figures(self.id, RequestTarget::Model(name.clone())),
            usage: self.accounts.usage(self.id, None, name),
            slowest: self.quota.slowest.clone(),
        };
        let only = || pipelines.keys().next().filter(|_| pipelines.len() == 1).cloned();
        Tenant {
            access: if spec.open { Access::Open } else { Access::Keys(keys()) },
            cors: spec.cors.as_ref().map(CorsSpec::policy),
            has_try_page: spec.open && spec.try_page,
            models: spec.models.iter().map(|name| (name.clone(), Arc::new(direct(name)))).collect(),
            weight: spec.weight,
            keeps_apart: spec.batch_with == BatchWith::Tenant,
            quota: self.quota,
            limits: spec.quota.limits(),
            default_pipeline: spec.default_pipeline.clone().or_else(only),
            pipelines,
            plugins: self.files.plugins,
            brought: self.files.brought,
            assets: self.files.assets,
        }
    }

    /// The pipeline with everything resolved, or unavailable because of all its faults. A candidate
    /// that cannot be tried does not make it unavailable.
    fn route(&self, name: &Name, spec: &PipelineSpec) -> Result<Route, Vec<String>> {
        let mut route = self.plain_route(name, spec, &self.quota)?;
        let before = self.route_before(name).and_then(|route| route.candidate.as_ref());
        let before = before.map(|candidate| &candidate.evaluation);
        let same = before.filter(|_| self.is_same_candidate(name, spec));
        route.capture = spec.capture.as_ref().map(|capture| self.capture(name, capture));
        let candidate = spec.candidate.as_deref();
        route.candidate = candidate.map(|candidate| self.candidate(name, spec, candidate, same));
        route.ended = match before {
            Some(before) if same.is_none() => Some(before.clone()),
            _ => self.route_before(name).and_then(|route| route.ended.clone()),
        };
        Ok(route)
    }

    /// The requests that are kept. They stay as long as the document says the same.
    fn capture(&self, name: &Name, spec: &CaptureSpec) -> Arc<Capture> {
        let before =
            self.before.and_then(|(tenant, _)| tenant.pipelines.get(name)?.capture.as_ref());
        let same = self.route_before(name).filter(|_| before == Some(spec));
        same.and_then(|route| route.capture.clone()).unwrap_or_else(|| {
            let (redacted, budget) = (spec.redact_headers.clone(), self.quota.bytes.clone());
            Arc::new(Capture::new(spec.share(), spec.most(), redacted, budget))
        })
    }

    /// The candidate with everything resolved, or with all its faults. `same`: its evaluation, if
    /// it was tried before.
    fn candidate(
        &self,
        name: &Name,
        spec: &PipelineSpec,
        candidate: &CandidateSpec,
        same: Option<&Arc<Evaluation>>,
    ) -> Candidate {
        let promoted = spec.promoted().unwrap_or_else(|| spec.clone());
        let shadows = candidate.is_shadow().then(|| self.accounts.shadows(self.id));
        let quota = shadows.as_ref().map_or(&self.quota, |shadows| &shadows.quota);
        let mut route = self.plain_route(name, &promoted, quota);
        if let Ok(route) = &mut route
            && candidate.is_shadow()
        {
            // Behind all requests of clients.
            route.priority = Some(LAST_PRIORITY);
            route.stores = self.stores(true);
            route.outgoing = self.outgoing(true);
        }
        let takes = match shadows {
            Some(shadows) => {
                let (tenant_permits, all_permits) =
                    (shadows.permits, self.accounts.shadows.clone());
                Takes::Shadow { tenant_permits, all_permits, tolerance: candidate.tolerance() }
            }
            None => Takes::Traffic,
        };
        let evaluation = same.cloned().unwrap_or_else(|| {
            let abort = self.accounts.abort(self.id, name, candidate);
            Arc::new(Evaluation::new(candidate.bounds(), self.release, abort))
        });
        let served = route.map(Arc::new).map_err(|faults| {
            let faults = faults.iter().map(|fault| format!("candidate: {fault}"));
            faults.collect::<Vec<_>>().join("; ")
        });
        let (share, sticky_header) = (candidate.share(), candidate.sticky_header.clone());
        Candidate { served, takes, share, sticky_header, evaluation }
    }

    /// The pipeline as it was before, if it served.
    fn route_before(&self, name: &Name) -> Option<&Route> {
        match self.before?.1.pipelines.get(name)? {
            Pipeline::Ready(route) => Some(route),
            Pipeline::Unavailable(_) => None,
        }
    }

    /// Whether the candidate says what it said before, and its plugins and assets are the same
    /// files.
    fn is_same_candidate(&self, name: &Name, spec: &PipelineSpec) -> bool {
        let files = |tenant: &gristmill_state::Tenant, spec: &PipelineSpec| {
            let file = |named: &NamedVersion| tenant.plugins.get(&named.name)?.file(named.version);
            let asset = |named: &NamedVersion| tenant.assets.get(&named.name)?.file(named.version);
            let plugins = spec.candidate_plugins()?.into_iter().map(file);
            let assets = spec.candidate_assets()?.iter();
            let assets = assets.map(|(name, named)| (name.clone(), asset(named)));
            Some((plugins.collect::<Vec<_>>(), assets.collect::<Vec<_>>()))
        };
        let before =
            self.before.and_then(|(tenant, _)| Some((tenant, tenant.pipelines.get(name)?)));
        before.is_some_and(|(tenant, pipeline)| {
            pipeline.candidate == spec.candidate
                && files(tenant, pipeline) == files(self.desired_tenant, spec)
        })
    }

    /// The pipeline without its candidate. Its requests count against `quota`.
    fn plain_route(
        &self,
        name: &Name,
        spec: &PipelineSpec,
        quota: &Arc<TenantQuota>,
    ) -> Result<Route, Vec<String>> {
        let limits = spec.limits.resolve(self.limits);
        let wanted = Wanted {
            parts: &spec.program.parts(),
            assets: &spec.assets,
            priority: spec.priority,
            memory_bytes: limits.as_ref().ok().map(|limits| limits.plugin.memory_bytes),
        };
        let mut conflicts = Faults::default();
        let Files { plugins, assets, .. } = &self.files;
        wanted.check(plugins, assets, |name| self.models.get(name), &mut conflicts);
        let mut faults = conflicts.into_texts();
        let limits = limits.map_err(|limit_faults| faults.extend(limit_faults)).ok();
        let program = match faults.is_empty() {
            true => self.program(name, spec, quota),
            false => None,
        };
        let (Some(program), Some(limits)) = (program, limits) else { return Err(faults) };
        let settings = serde_json::to_string(&spec.settings).unwrap_or_else(|_| "{}".into());
        Ok(Route {
            tenant: self.id.0.clone(),
            pipeline: name.clone(),
            program,
            settings: settings.into(),
            debug: spec.debug,
            redirects: self.desired_tenant.spec.redirects.clone(),
            weight: self.desired_tenant.spec.weight,
            keeps_apart: self.desired_tenant.spec.batch_with == BatchWith::Tenant,
            priority: spec.priority,
            signature: spec.oip.as_ref().map(|oip| Arc::new(oip.signature())),
            limits,
            quota: quota.clone(),
            stores: self.stores(false),
            outgoing: self.outgoing(false),
            figures: self.accounts.figures(self.id, RequestTarget::Pipeline(name.clone())),
            usage: self.usage(name, &spec.program),
            capture: None,
            candidate: None,
            ended: None,
        })
    }

    /// The plugins, assets and models of a pipeline. None if one is not loaded.
    fn program(
        &self,
        name: &Name,
        spec: &PipelineSpec,
        quota: &Arc<TenantQuota>,
    ) -> Option<Program> {
        let reuse = spec.instance_reuse.resolve();
        let named: Assets = spec
            .assets
            .iter()
            .map(|(name, asset)| Some((Box::<str>::from(name.as_str()), self.asset(asset)?)))
            .collect::<Option<_>>()?;
        // Also those of a shadow are the tenant's.
        let files = |brought: &Assets| named.over(brought).of_owner(&self.quota.bytes);
        Some(match &spec.program {
            ProgramSpec::Pair { pre, model, post } => {
                let (first, second) = (self.plugin(pre)?, self.plugin(post)?);
                Program::Pair(Pair {
                    pre: self.source(name, &pre.name, "preprocess"),
                    pre_assets: files(self.brought(pre)?),
                    model: model.name.clone(),
                    lane: self.lane(model)?,
                    post: self.source(name, &post.name, "postprocess"),
                    post_assets: files(self.brought(post)?),
                    plugins: PluginPair::new(first, second, &reuse, &quota.calls),
                })
            }
            ProgramSpec::Handler { handler, models } => {
                let model = |(key, named): (&Name, &NamedVersion)| {
                    let (model, lane) = (named.name.clone(), self.lane(named)?);
                    Some((key.clone(), HandlerModel { model, lane }))
                };
                Program::Handler(Handler {
                    assets: files(self.brought(handler)?),
                    plugin: HandlerPlugin::new(self.plugin(handler)?, &reuse, &quota.calls),
                    source: self.source(name, &handler.name, "handle"),
                    models: models.iter().map(model).collect::<Option<_>>()?,
                })
            }
        })
    }

    /// The stores that the plugins of a pipeline, or of its shadow, may use.
    fn stores(&self, is_shadow: bool) -> Option<Arc<TenantStores>> {
        self.accounts.stores(self.id, &self.desired_tenant.spec.stores, is_shadow)
    }

    /// The services to which the plugins of a pipeline, or of its shadow, may send requests.
    fn outgoing(&self, is_shadow: bool) -> Option<Arc<TenantOutgoing>> {
        self.accounts.outgoing(self.id, &self.desired_tenant.spec.http, is_shadow)
    }

    /// What counts the use of a pipeline's requests: a counter for each of its models.
    fn usage(&self, pipeline: &Name, program: &ProgramSpec) -> Vec<(Name, Arc<Counter>)> {
        let mut usage = Vec::<(Name, Arc<Counter>)>::new();
        for NamedVersion { name, .. } in program.models() {
            if usage.iter().all(|(other, _)| other != name) {
                let counter = self.accounts.usage(self.id, Some(pipeline), name);
                usage.push((name.clone(), counter));
            }
        }
        usage
    }

    /// The lines of one call of a pipeline.
    fn source(&self, pipeline: &Name, plugin: &Name, call: &'static str) -> Arc<LineSource> {
        let (plugin, pipeline, kept) = (plugin.clone(), pipeline.clone(), self.quota.lines.clone());
        Arc::new(LineSource { plugin, pipeline, call, kept })
    }

    fn lane(&self, named: &NamedVersion) -> Option<Arc<Lane>> {
        let served = self.models.get(&named.name)?.of_version(named.version)?.as_ref().ok()?;
        Some(served.lane.clone())
    }

    fn plugin(&self, named: &NamedVersion) -> Option<Arc<Plugin>> {
        self.files.plugins.get(&named.name)?.of_version(named.version)?.as_ref().ok().cloned()
    }

    /// The files that the plugin brings.
    fn brought(&self, named: &NamedVersion) -> Option<&Assets> {
        let digest = self.desired_tenant.plugins.get(&named.name)?.file(named.version)?;
        self.files.brought.get(&digest).map(|files| &**files)
    }

    fn asset(&self, named: &NamedVersion) -> Option<Arc<Asset>> {
        self.files.assets.get(&named.name)?.of_version(named.version)?.as_ref().ok().cloned()
    }
}
