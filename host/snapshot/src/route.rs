//! A pipeline with everything resolved that a request needs, and its candidate likewise.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gristmill_batch::Lane;
use gristmill_core::{
    Late, Name, Named, Origins, PipelineLimits, Record, Sink, SinkNames, Slowest, Stage,
};
use gristmill_metrics::RequestFigures;
use gristmill_metrics::usage::{Counter, Use};
use gristmill_sandbox::{
    Assets, HandlerPlugin, LineSource, PluginPair, TenantOutgoing, TenantStores,
};
use tokio::sync::Semaphore;

use crate::capture::Capture;
use crate::evaluation::Evaluation;
use crate::quota::TenantQuota;
use crate::signature::Signature;

/// A pipeline, or why it cannot serve.
pub enum Pipeline {
    /// It serves.
    Ready(Arc<Route>),
    /// It does not serve, for this reason.
    Unavailable(String),
}

/// A pipeline with everything resolved that a request needs.
pub struct Route {
    /// The name of its tenant.
    pub tenant: Name,
    /// Its own name.
    pub pipeline: Name,
    /// What runs its requests.
    pub program: Program,
    /// A JSON document.
    pub settings: Arc<str>,
    /// Whether its clients see why a plugin call failed, with the lines of that call.
    pub debug: bool,
    /// The origins of the pages to which its plugins may redirect browsers.
    pub redirects: Origins,
    /// The tenant's share of contended batches.
    pub weight: u32,
    /// Whether the tenant's rows share batches with no other tenant's.
    pub keeps_apart: bool,
    /// The model's priority level for these requests. None means the model's default level.
    pub priority: Option<u32>,
    /// Its named inputs and outputs over the Open Inference Protocol. None if it has one text each
    /// way.
    pub signature: Option<Arc<Signature>>,
    /// The limits of its requests and of its plugin calls.
    pub limits: PipelineLimits,
    /// The tenant's quota, shared by all of its pipelines.
    pub quota: Arc<TenantQuota>,
    /// The stores that its plugins may use. None if the tenant's document grants none.
    pub stores: Option<Arc<TenantStores>>,
    /// The services to which its plugins may send HTTP requests. None if the tenant's document
    /// grants none.
    pub outgoing: Option<Arc<TenantOutgoing>>,
    /// The figures of its requests, which are the same in every snapshot.
    pub figures: Arc<RequestFigures>,
    /// Counts what its requests use, for each model that they run. The first one also counts the
    /// requests, and all that no model did.
    pub usage: Vec<(Name, Arc<Counter>)>,
    /// The requests that are kept, if some shall be.
    pub capture: Option<Arc<Capture>>,
    /// The candidate for its place.
    pub candidate: Option<Candidate>,
    /// How the last candidate fared that is one no longer.
    pub ended: Option<Arc<Evaluation>>,
}

/// What runs the requests of a pipeline.
pub enum Program {
    /// One plugin before one model, and one after it.
    Pair(Pair),
    /// One plugin that runs the models which it needs.
    Handler(Handler),
}

/// A preprocessor, a model and a postprocessor.
pub struct Pair {
    /// Both plugins.
    pub plugins: PluginPair,
    /// The preprocessor's name, and its lines.
    pub pre: Arc<LineSource>,
    /// The files that the preprocessor can open.
    pub pre_assets: Assets,
    /// The name of the model.
    pub model: Name,
    /// The lane of the model.
    pub lane: Arc<Lane>,
    /// The postprocessor's name, and its lines.
    pub post: Arc<LineSource>,
    /// The files that the postprocessor can open.
    pub post_assets: Assets,
}

/// A handler, and the models that it may run.
pub struct Handler {
    /// The plugin.
    pub plugin: HandlerPlugin,
    /// The plugin's name, and its lines.
    pub source: Arc<LineSource>,
    /// The files that it can open.
    pub assets: Assets,
    /// The models, by the names that the handler's code has for them.
    pub models: BTreeMap<Name, HandlerModel>,
}

/// A model of a handler.
pub struct HandlerModel {
    /// The model's own name.
    pub model: Name,
    /// The lane of the model.
    pub lane: Arc<Lane>,
}

impl Program {
    /// The lanes of its models, by the models' names. The first one is that of the context.
    pub fn lanes(&self) -> impl Iterator<Item = (&Name, &Arc<Lane>)> {
        let (one, several) = match self {
            Self::Pair(Pair { model, lane, .. }) => (Some((model, lane)), None),
            Self::Handler(Handler { models, .. }) => {
                (None, Some(models.values().map(|HandlerModel { model, lane }| (model, lane))))
            }
        };
        one.into_iter().chain(several.into_iter().flatten())
    }

    /// Whether it runs models in the same lanes as another one.
    pub fn has_lanes_of(&self, other: &Self) -> bool {
        let lanes = |program: &Self| program.lanes().map(|(_, lane)| Arc::as_ptr(lane)).collect();
        let (own_lanes, others): (Vec<_>, Vec<_>) = (lanes(self), lanes(other));
        own_lanes == others
    }

    /// Whether its plugins can open the same files as those of another one.
    pub fn has_assets_of(&self, other: &Self) -> bool {
        let files = |program: &Self| {
            let (first, second) = match program {
                Self::Pair(Pair { pre_assets, post_assets, .. }) => (pre_assets, Some(post_assets)),
                Self::Handler(Handler { assets, .. }) => (assets, None),
            };
            let all = std::iter::once(first).chain(second).flat_map(Assets::files);
            all.map(Arc::as_ptr).collect::<Vec<_>>()
        };
        files(self) == files(other)
    }

    /// Whether both run a model in the same lane.
    pub fn shares_lane_with(&self, other: &Self) -> bool {
        let is_shared = |lane: &Arc<Lane>| other.lanes().any(|(_, other)| Arc::ptr_eq(lane, other));
        self.lanes().any(|(_, lane)| is_shared(lane))
    }

    /// The call of a plugin in this stage: its name, and its lines.
    pub fn source_of(&self, stage: Stage) -> &Arc<LineSource> {
        match self {
            Self::Pair(Pair { pre, .. }) if stage == Stage::Pre => pre,
            Self::Pair(Pair { post, .. }) => post,
            Self::Handler(Handler { source, .. }) => source,
        }
    }
}

/// A candidate with everything resolved that a request needs.
pub struct Candidate {
    /// Its own way of a request, or why it cannot be tried. Its quota is the tenant's, or that of
    /// the tenant's shadows.
    pub served: Result<Arc<Route>, String>,
    /// What it gets of the pipeline's requests.
    pub takes: Takes,
    /// The share of requests, from 0 to 1.
    pub share: f64,
    /// Requests with the same value of this header, in lower case, get the same variant.
    pub sticky_header: Option<String>,
    /// How it fares. It is the same in every snapshot, as long as its document is.
    pub evaluation: Arc<Evaluation>,
}

/// What a candidate gets of the requests.
pub enum Takes {
    /// It answers its share of them.
    Traffic,
    /// It runs its share of them once they are answered. Its answers are compared with those that
    /// clients got, and dropped.
    Shadow {
        /// One for each shadow of the tenant that may run.
        tenant_permits: Arc<Semaphore>,
        /// One for each shadow of all tenants that may run.
        all_permits: Arc<Semaphore>,
        /// The largest difference of two numbers that are not whole, as the absolute difference
        /// and as the share of the number.
        tolerance: f64,
    },
}

/// Requests are charged to the pipeline.
impl Sink for Route {
    fn record(&self, record: &Record, took: Duration) {
        self.figures.record(record, took);
        let Some(((_, first), others)) = self.usage.split_first() else { return };
        let mut rest = Use::of(record);
        for (model, counter) in others {
            let used = Use::of_runs(record, model);
            rest.take_away(&used);
            counter.count(&used);
        }
        first.count(&rest);
    }

    fn add_late(&self, late: &mut Late, model: &str) {
        late.add(self.figures.clone());
        let of_model = self.usage.iter().find(|(name, _)| name.as_str() == model);
        if let Some((_, counter)) = of_model.or(self.usage.first()) {
            late.add(counter.clone());
        }
    }

    fn slowest(&self) -> Option<&Slowest> {
        Some(&self.quota.slowest)
    }
}

impl Named for Route {
    fn names(&self) -> SinkNames<'_> {
        SinkNames {
            tenant: Some(&self.tenant),
            pipeline: Some(&self.pipeline),
            model: self.program.lanes().map(|(model, _)| model).next(),
        }
    }
}
