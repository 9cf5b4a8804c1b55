//! The record of one request: its times, sizes and outcome.
//!
//! A [`Receipt`] is opened when a request arrives, and is lent to its work. It is closed exactly
//! once: by its owner when the answer is ready, or when it is dropped because the client left. What
//! a request used is charged then, and not when a slow client has read its answer: while an answer
//! is read, nothing of its pipeline or its model is held.
//!
//! Parts of a request that run side by side note what they use in receipts of their own
//! ([`Receipt::part`]), which are joined to that of the request: it is charged once, as a whole.
//!
//! Invariant: a receipt reaches each of its sinks exactly once.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::charge::{Charge, Late, ModelUse, micros};
use crate::named::{Named, SinkNames};
use crate::slowest::Slowest;
use crate::span::{ModelRun, PluginCall, Span, Step};
use crate::stages::{Stage, Stages};
use crate::{BatchSink, ErrorCode, Follow, Name, Progress, Requests, Tracked, host_time};

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Its client left before it was answered.
    #[default]
    Abandoned,
    /// It was answered.
    Answered,
    /// It failed with this code.
    Failed(ErrorCode),
}

/// The record of one request.
#[derive(Clone, Debug)]
pub struct Record {
    /// When it reached the host.
    pub arrived: Instant,
    /// From its arrival until its answer was ready, or its client left. Set when it has ended.
    pub took: Duration,
    /// From its arrival until its caller was admitted.
    pub auth: Option<Duration>,
    /// Reading and decoding its body.
    pub read: Option<Duration>,
    /// Its calls of plugins and its runs of models, in the order in which they ended. A handler's
    /// call stands before its runs.
    pub spans: SmallVec<[Span; 3]>,
    /// The host's own CPU time for it. Set when it has ended.
    pub host_time: Duration,
    /// Bytes of the request's body.
    pub request_bytes: usize,
    /// Bytes of the answer's body.
    pub response_bytes: usize,
    /// The tenant; set after authentication if access log or traces are on.
    pub tenant: Option<Name>,
    /// Its pipeline or model. Set when it has ended.
    pub subject: Option<Subject>,
    /// Whether it is charged to a pipeline or a model.
    pub is_charged: bool,
    /// How it ended.
    pub outcome: Outcome,
}

impl Record {
    fn begin(arrived: Instant) -> Self {
        Self {
            arrived,
            took: Duration::ZERO,
            auth: None,
            read: None,
            spans: SmallVec::new(),
            host_time: Duration::ZERO,
            request_bytes: 0,
            response_bytes: 0,
            tenant: None,
            subject: None,
            is_charged: false,
            outcome: Outcome::default(),
        }
    }

    /// The code with which it failed, if it did.
    pub fn code(&self) -> Option<ErrorCode> {
        match self.outcome {
            Outcome::Failed(code) => Some(code),
            Outcome::Answered | Outcome::Abandoned => None,
        }
    }

    /// The names of its pipeline and model, once it has ended.
    pub fn names(&self) -> SinkNames<'_> {
        self.subject.as_ref().map(Subject::names).unwrap_or_default()
    }

    /// Its calls of plugins.
    pub fn calls(&self) -> impl Iterator<Item = &PluginCall> {
        self.spans.iter().filter_map(|span| match span {
            Span::Call(call) => Some(call),
            Span::Run(_) => None,
        })
    }

    /// Its runs of models.
    pub fn runs(&self) -> impl Iterator<Item = &ModelRun> {
        self.spans.iter().filter_map(|span| match span {
            Span::Run(run) => Some(run),
            Span::Call(_) => None,
        })
    }

    /// Note a call of a plugin, or more about the call of the same stage.
    pub fn note_call(&mut self, noted: PluginCall) {
        for span in &mut self.spans {
            if let Span::Call(call) = span
                && call.stage == noted.stage
            {
                call.began = noted.began.or(call.began);
                call.waited = noted.waited.max(call.waited);
                call.took = noted.took.or(call.took);
                call.used = noted.used.or(call.used);
                return;
            }
        }
        self.spans.push(Span::Call(noted));
    }

    /// All stages that it reached, in their order.
    pub fn steps(&self) -> impl Iterator<Item = Step<'_>> {
        let before = [(Stage::Auth, self.auth), (Stage::Read, self.read)];
        let before = before.into_iter().filter_map(|(stage, took)| {
            let took = took?;
            Some(Step { stage, took, span: None })
        });
        before.chain(self.spans.iter().flat_map(Span::steps))
    }

    /// How long each stage took, all spans together.
    pub fn stages(&self) -> Stages {
        let mut stages = Stages { auth: self.auth, read: self.read, ..Stages::default() };
        for span in &self.spans {
            match span {
                Span::Call(call) => {
                    if let Some(took) = call.own_time() {
                        stages.add(call.stage, took);
                    }
                    if let Some(lookup) = call.lookup() {
                        stages.add(Stage::Lookup, lookup);
                    }
                }
                Span::Run(ModelRun { queue, staging, infer, .. }) => {
                    stages.add(Stage::Queue, *queue);
                    stages.add(Stage::Infer, *infer);
                    if let Some(staging) = staging {
                        stages.add(Stage::Staging, *staging);
                    }
                }
            }
        }
        stages
    }

    /// The use that it made of models, all runs together.
    pub fn used(&self) -> ModelUse {
        let mut used = ModelUse::default();
        self.runs().for_each(|run| used.add(run.used));
        used
    }

    /// Rows of its largest batch, those of other requests included.
    pub fn batch_rows(&self) -> usize {
        self.runs().map(|run| run.batch_rows).max().unwrap_or_default()
    }

    /// Peak number of tenants with requests in one of its batches.
    pub fn batch_tenants(&self) -> usize {
        self.runs().map(|run| run.batch_tenants).max().unwrap_or_default()
    }

    /// The provider of the last model that has several.
    pub fn provider(&self) -> Option<&'static str> {
        self.runs().filter_map(|run| run.provider).last()
    }

    /// The use of the server by this request.
    pub fn charge(&self) -> Charge {
        let calls = self.calls().filter_map(|call| call.used);
        Charge {
            plugin_cpu_us: micros(calls.map(|usage| usage.cpu).sum()),
            host_cpu_us: micros(self.host_time),
            queue_us: micros(self.runs().map(|run| run.queue).sum()),
            received_bytes: self.request_bytes as u64,
            sent_bytes: self.response_bytes as u64,
            ..self.used().charge()
        }
    }
}

/// The pipeline or model of a request: one of its sinks, which knows the names.
#[derive(Clone)]
pub struct Subject(Arc<dyn Sink>);

impl Subject {
    /// Its names.
    pub fn names(&self) -> SinkNames<'_> {
        self.0.names()
    }

    /// The slowest requests of its tenant.
    pub fn slowest(&self) -> Option<&Slowest> {
        self.0.slowest()
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subject").field(&self.names()).finish()
    }
}

/// Takes the records of requests that ended.
pub trait Sink: Named {
    /// Take the record of a request that has ended, `took` after it was charged to this sink. This
    /// runs on a serving thread, so it must be quick.
    fn record(&self, record: &Record, took: Duration);

    /// Add the counters of what requests still use of this model after they have ended.
    fn add_late(&self, _late: &mut Late, _model: &str) {}

    /// The slowest requests of the tenant, if it knows them.
    fn slowest(&self) -> Option<&Slowest> {
        None
    }
}

/// The record of a request under way. Dropping it closes it.
pub struct Receipt {
    record: Record,
    /// The destinations of the record, and since when each is charged.
    sinks: SmallVec<[(Arc<dyn Sink>, Instant); 3]>,
    /// Takes the request's batches, if they are traced.
    batches: Option<&'static dyn BatchSink>,
    tracked: Option<Tracked>,
    /// Of `tracked`. Parts of the request have it, too.
    progress: Option<Progress>,
    is_closed: bool,
}

impl Receipt {
    /// Open the receipt of a request that arrived at `arrived`.
    pub fn open(arrived: Instant) -> Self {
        let record = Record::begin(arrived);
        let (sinks, batches, tracked, progress) = (SmallVec::new(), None, None, None);
        Self { record, sinks, batches, tracked, progress, is_closed: false }
    }

    /// The receipt of a part of this request, which runs beside other parts. It is never closed:
    /// [`join`](Self::join) adds what it noted to this one. Runs of models that end after the part
    /// are charged as runs of this request.
    pub fn part(&self) -> Self {
        Self {
            record: Record::begin(self.record.arrived),
            sinks: self.sinks.clone(),
            batches: self.batches,
            tracked: None,
            progress: self.progress,
            is_closed: true,
        }
    }

    /// Add the calls and the runs of a part.
    pub fn join(&mut self, mut part: Self) {
        self.record.spans.extend(part.record.spans.drain(..));
    }

    /// Show the request among those that are under way, until the receipt is closed.
    pub fn track(&mut self, requests: &'static Requests, id: &str) {
        let tracked = requests.track(id, self.record.arrived);
        self.progress = Some(tracked.progress());
        self.tracked = Some(tracked);
    }

    /// Note that the request begins this stage.
    pub fn enters(&self, stage: Stage) {
        if let Some(progress) = self.progress {
            progress.enters(stage);
        }
    }

    /// Send the record to `sink`, too, when the request ends.
    pub fn charge_to(&mut self, sink: Arc<dyn Sink>) {
        if let Some(tracked) = &self.tracked
            && sink.names() != SinkNames::default()
        {
            tracked.charged_to(sink.clone());
        }
        self.record.is_charged = true;
        self.sinks.push((sink, Instant::now()));
    }

    /// Let its batches be traced.
    pub fn trace_batches(&mut self, sink: &'static dyn BatchSink) {
        self.batches = Some(sink);
    }

    /// What follows the request into its batches.
    pub fn follow(&self) -> Follow {
        Follow { traces: self.batches, progress: self.progress }
    }

    /// The counters for runs of this model that end after the request.
    pub fn late(&self, model: &str) -> Late {
        let mut late = Late::default();
        self.sinks.iter().for_each(|(sink, _)| sink.add_late(&mut late, model));
        late
    }

    /// The record so far.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The record, to be changed.
    pub fn note(&mut self) -> &mut Record {
        &mut self.record
    }

    /// Note that the caller was admitted now.
    pub fn admitted(&mut self) {
        self.record.auth = Some(self.record.arrived.elapsed());
        self.enters(Stage::Read);
    }

    /// Note that the body was read and decoded now, after the caller was admitted.
    pub fn read(&mut self) {
        let auth = self.record.auth.unwrap_or_default();
        self.record.read = Some(self.record.arrived.elapsed().saturating_sub(auth));
    }

    /// Close the receipt: the request ends so, with so many bytes of its answer's body. Its record
    /// reaches all sinks now. Returns it.
    pub fn close(&mut self, outcome: Outcome, response_bytes: usize) -> &Record {
        if std::mem::replace(&mut self.is_closed, true) {
            return &self.record;
        }
        self.record.outcome = outcome;
        self.record.response_bytes = response_bytes;
        let now = Instant::now();
        self.record.took = now.saturating_duration_since(self.record.arrived);
        (self.tracked, self.progress) = (None, None);
        // Also of a request without sinks: otherwise the next one would pay for it.
        self.record.host_time = host_time::take();
        let mut first = None;
        for (sink, since) in self.sinks.drain(..) {
            sink.record(&self.record, now.saturating_duration_since(since));
            if first.is_none() && sink.names() != SinkNames::default() {
                first = Some(sink);
            }
        }
        self.record.subject = self.record.subject.take().or(first.map(Subject));
        &self.record
    }

    /// Close the receipt of a request that was answered with so many bytes. Returns its record.
    pub fn answered(mut self, response_bytes: usize) -> Record {
        self.close(Outcome::Answered, response_bytes).clone()
    }

    /// Close the receipt of a request that failed, and was told so in so many bytes. Returns its
    /// record.
    pub fn failed(mut self, code: ErrorCode, response_bytes: usize) -> Record {
        self.close(Outcome::Failed(code), response_bytes).clone()
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        self.close(Outcome::Abandoned, 0);
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receipt").field(&self.record).finish()
    }
}

#[cfg(test)]
mod tests;
