//! The spans of a request: its calls of plugins and its runs of models, in the order in which they
//! ended, each with what it used.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::charge::ModelUse;
use crate::stages::Stage;
use crate::{BatchRecord, Name};

/// The use that one call of a plugin made of its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallUsage {
    /// CPU time, in the guest and in native work done for it.
    pub cpu: Duration,
    /// The CPU time that it may take. It is more if the call decodes an image.
    pub cpu_limit: Duration,
    /// The linear memory of its instance, in bytes.
    pub memory_bytes: usize,
    /// Peak bytes of tensors and images that it held.
    pub host_memory_bytes: usize,
    /// How long it waited for stores. This is a part of the call.
    pub lookup: Duration,
}

/// A call of a plugin.
#[derive(Clone, Debug)]
pub struct PluginCall {
    /// The stage in which it ran.
    pub stage: Stage,
    /// When it began. If it is not known, it began when the span before it ended.
    pub began: Option<Instant>,
    /// How long it waited for models.
    pub waited: Duration,
    /// How long it took, with the time in which it waited. None if it was still under way at the
    /// end.
    pub took: Option<Duration>,
    /// The use that it made of its limits; up to its last pause if it was still under way at the
    /// end. None if it did not begin.
    pub used: Option<CallUsage>,
}

impl PluginCall {
    /// A call of which only the stage is known.
    pub fn new(stage: Stage) -> Self {
        Self { stage, began: None, waited: Duration::ZERO, took: None, used: None }
    }

    /// How long it waited for stores, if it did.
    pub fn lookup(&self) -> Option<Duration> {
        self.used.map(|used| used.lookup).filter(|lookup| !lookup.is_zero())
    }

    /// How long it took, without the time in which it waited.
    pub fn own_time(&self) -> Option<Duration> {
        Some(self.took?.saturating_sub(self.waited))
    }
}

/// A run of a model.
#[derive(Clone, Debug)]
pub struct ModelRun {
    /// The model.
    pub model: Name,
    /// When it came to the model's queue. If it is not known, that was when the span before it
    /// ended.
    pub began: Option<Instant>,
    /// How long it waited in the model's queue.
    pub queue: Duration,
    /// Copying its batch together. This is a part of `infer`.
    pub staging: Option<Duration>,
    /// In the model. This includes copying its batch together and taking it apart.
    pub infer: Duration,
    /// The use that it made of the model.
    pub used: ModelUse,
    /// Rows of its batch, those of other requests included; of the largest if it ran in several.
    pub batch_rows: usize,
    /// Tenants with requests in its batch; the most if it ran in several.
    pub batch_tenants: usize,
    /// The provider that ran the model, if the model has several.
    pub provider: Option<&'static str>,
    /// Its batch, if that is traced; the last one if it ran in several.
    pub batch: Option<Arc<BatchRecord>>,
}

impl ModelRun {
    /// A run of the model that waited and took so long, and of which no more is known.
    pub fn new(model: Name, queue: Duration, infer: Duration) -> Self {
        Self {
            model,
            began: None,
            queue,
            staging: None,
            infer,
            used: ModelUse::default(),
            batch_rows: 0,
            batch_tenants: 0,
            provider: None,
            batch: None,
        }
    }
}

/// A part of a request's way.
#[derive(Clone, Debug)]
pub enum Span {
    /// A call of a plugin.
    Call(PluginCall),
    /// A run of a model.
    Run(ModelRun),
}

/// A stage of a span, and how long it took. Stages of one span do not overlap: `infer` is without
/// staging. A call of a plugin is without the time in which it waited for models.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The stage.
    pub stage: Stage,
    /// How long it took.
    pub took: Duration,
    /// The span, if it is of one.
    pub span: Option<&'a Span>,
}

impl Span {
    /// When it began. If it is not known, it began when the span before it ended.
    pub fn began(&self) -> Option<Instant> {
        match self {
            Self::Call(call) => call.began,
            Self::Run(run) => run.began,
        }
    }

    /// Its stages, in their order.
    pub fn steps(&self) -> impl Iterator<Item = Step<'_>> {
        let steps = match self {
            Self::Call(call) => [call.own_time().map(|took| (call.stage, took)), None, None],
            Self::Run(run) => {
                let staging = run.staging.unwrap_or_default();
                [
                    Some((Stage::Queue, run.queue)),
                    run.staging.map(|staging| (Stage::Staging, staging)),
                    Some((Stage::Infer, run.infer.saturating_sub(staging))),
                ]
            }
        };
        let steps = steps.into_iter().flatten();
        steps.map(|(stage, took)| Step { stage, took, span: Some(self) })
    }
}
