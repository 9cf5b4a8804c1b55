//! The record of one request: its times, sizes and outcome.
//!
//! A [`Receipt`] is opened when a request arrives, and is lent to its work. It is closed exactly
//! once: by its owner when the answer is sent, or when it is dropped because the client left.
//!
//! Invariant: a receipt reaches each of its sinks exactly once.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::charge::{Charge, Late, ModelUse, micros};
use crate::named::{Named, SinkNames};
use crate::stages::{Stage, Stages};
use crate::{BatchRecord, BatchSink, ErrorCode, Follow, Name, Requests, Tracked, host_time};

/// The use that one call of a plugin made of its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallUsage {
    /// CPU time, in the guest and in native work done for it.
    pub cpu: Duration,
    /// The CPU time that it may take. It is more if the call decodes a picture.
    pub cpu_limit: Duration,
    /// The linear memory of its instance, in bytes.
    pub memory_bytes: usize,
    /// The most bytes of tensors and pictures that it held.
    pub host_memory_bytes: usize,
}

/// The use that a request's plugin calls made of their limits. A call that was not made has no
/// figures. One that was still under way at the end has those up to its last pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// The call of `preprocess`.
    pub pre: Option<CallUsage>,
    /// The call of `postprocess`.
    pub post: Option<CallUsage>,
}

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
    /// How long its stages took.
    pub stages: Stages,
    /// What its plugin calls used.
    pub calls: Calls,
    /// The use that it made of the model.
    pub model: ModelUse,
    /// Rows of its batch, those of other requests included; of the largest if it ran in several.
    pub batch_rows: usize,
    /// Tenants with requests in its batch; the most if it ran in several.
    pub batch_tenants: usize,
    /// The host's own processor time for it. Set when it has ended.
    pub host_time: Duration,
    /// Bytes of the request's body.
    pub request_bytes: usize,
    /// Bytes of the answer's body.
    pub response_bytes: usize,
    /// The provider that ran the model, if the model has several.
    pub provider: Option<&'static str>,
    /// The tenant, once its caller was admitted, if the request is told of.
    pub tenant: Option<Name>,
    /// Its pipeline or model. Set when it has ended.
    pub subject: Option<Subject>,
    /// Its batch, if that is traced; the last one if it ran in several.
    pub batch: Option<Arc<BatchRecord>>,
    /// Whether it is charged to a pipeline or a model.
    pub is_charged: bool,
    /// How it ended.
    pub outcome: Outcome,
}

impl Record {
    fn begin(arrived: Instant) -> Self {
        Self {
            arrived,
            stages: Stages::default(),
            calls: Calls::default(),
            model: ModelUse::default(),
            batch_rows: 0,
            batch_tenants: 0,
            host_time: Duration::ZERO,
            request_bytes: 0,
            response_bytes: 0,
            provider: None,
            tenant: None,
            subject: None,
            batch: None,
            is_charged: false,
            outcome: Outcome::default(),
        }
    }

    /// The names of its pipeline and model, once it has ended.
    pub fn names(&self) -> SinkNames<'_> {
        self.subject.as_ref().map(Subject::names).unwrap_or_default()
    }

    /// The use of the server by this request.
    pub fn charge(&self) -> Charge {
        let calls = [self.calls.pre, self.calls.post].into_iter().flatten();
        Charge {
            plugin_cpu_us: micros(calls.map(|usage| usage.cpu).sum()),
            host_cpu_us: micros(self.host_time),
            queue_us: micros(self.stages.queue.unwrap_or_default()),
            received_bytes: self.request_bytes as u64,
            sent_bytes: self.response_bytes as u64,
            ..self.model.charge()
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
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subject").field(&self.names()).finish()
    }
}

/// Takes the records of requests that ended.
pub trait Sink: Named {
    /// Take the record of a request that has ended. Its answer was ready, or its client had left,
    /// `took` after it was charged to this sink: a client that reads slowly does not count. This
    /// runs on a serving thread, so it must be quick.
    fn record(&self, record: &Record, took: Duration);

    /// Add the counters of what requests still use after they have ended.
    fn add_late(&self, _late: &mut Late) {}
}

/// The record of a request under way. Dropping it closes it.
pub struct Receipt {
    record: Record,
    /// The destinations of the record, and since when each is charged.
    sinks: SmallVec<[(Arc<dyn Sink>, Instant); 3]>,
    /// Takes the request's batches, if they are traced.
    batches: Option<&'static dyn BatchSink>,
    tracked: Option<Tracked>,
    /// When the answer was ready, if it was.
    ready: Option<Instant>,
    is_closed: bool,
}

impl Receipt {
    /// Open the receipt of a request that arrived at `arrived`.
    pub fn open(arrived: Instant) -> Self {
        let record = Record::begin(arrived);
        let (sinks, batches, tracked) = (SmallVec::new(), None, None);
        Self { record, sinks, batches, tracked, ready: None, is_closed: false }
    }

    /// Show the request among those that are under way, until the receipt is closed.
    pub fn track(&mut self, requests: &'static Requests, id: &str) {
        self.tracked = Some(requests.track(id, self.record.arrived));
    }

    /// Note that the request begins this stage.
    pub fn enters(&self, stage: Stage) {
        if let Some(tracked) = &self.tracked {
            tracked.progress().enters(stage);
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
        let progress = self.tracked.as_ref().map(Tracked::progress);
        Follow { traces: self.batches, progress }
    }

    /// The counters for runs that end after the request.
    pub fn late(&self) -> Late {
        let mut late = Late::default();
        self.sinks.iter().for_each(|(sink, _)| sink.add_late(&mut late));
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
        self.record.stages.auth = Some(self.record.arrived.elapsed());
        self.enters(Stage::Read);
    }

    /// Note that the body was read and decoded now, after the caller was admitted.
    pub fn read(&mut self) {
        let auth = self.record.stages.auth.unwrap_or_default();
        self.record.stages.read = Some(self.record.arrived.elapsed().saturating_sub(auth));
    }

    /// Note that the answer is ready now: how the request ends unless its client leaves before it
    /// has the answer, and the bytes of the answer's body.
    pub fn is_ready(&mut self, outcome: Outcome, response_bytes: usize) {
        self.record.outcome = outcome;
        self.record.response_bytes = response_bytes;
        self.record.host_time += host_time::take();
        self.ready = Some(Instant::now());
    }

    /// The time from the request's arrival until its answer was ready, or until now.
    pub fn took(&self) -> Duration {
        let ready = self.ready.unwrap_or_else(Instant::now);
        ready.saturating_duration_since(self.record.arrived)
    }

    /// Close the receipt of a request whose answer is sent. Returns its record.
    pub fn close(&mut self) -> &Record {
        self.send();
        &self.record
    }

    /// Close the receipt of a request whose client left. Returns its record.
    pub fn abandon(&mut self) -> &Record {
        self.record.outcome = Outcome::Abandoned;
        self.close()
    }

    /// Close the receipt of a request that is answered with so many bytes now. Returns its record.
    pub fn answered(mut self, response_bytes: usize) -> Record {
        self.is_ready(Outcome::Answered, response_bytes);
        self.close().clone()
    }

    /// Close the receipt of a request that failed, and is told so in so many bytes now. Returns its
    /// record.
    pub fn failed(mut self, code: ErrorCode, response_bytes: usize) -> Record {
        self.is_ready(Outcome::Failed(code), response_bytes);
        self.close().clone()
    }

    fn send(&mut self) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        self.tracked = None;
        // Also of a request without sinks: otherwise the next one would pay for it.
        self.record.host_time += host_time::take();
        let ready = self.ready.unwrap_or_else(Instant::now);
        let mut first = None;
        for (sink, since) in self.sinks.drain(..) {
            sink.record(&self.record, ready.saturating_duration_since(since));
            if first.is_none() && sink.names() != SinkNames::default() {
                first = Some(sink);
            }
        }
        self.record.subject = self.record.subject.take().or(first.map(Subject));
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if !self.is_closed {
            self.abandon();
        }
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receipt").field(&self.record).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Outcomes(Mutex<Vec<Outcome>>);

    impl Named for Outcomes {}

    impl Sink for Outcomes {
        fn record(&self, record: &Record, _: Duration) {
            self.0.lock().unwrap().push(record.outcome);
        }
    }

    #[test]
    fn each_sink_gets_the_record() {
        let (one, other) = (Arc::new(Outcomes::default()), Arc::new(Outcomes::default()));
        let mut receipt = Receipt::open(Instant::now());
        receipt.charge_to(one.clone());
        receipt.charge_to(other.clone());
        receipt.answered(0);
        for outcomes in [one, other] {
            assert_eq!(*outcomes.0.lock().unwrap(), [Outcome::Answered]);
        }
    }

    #[test]
    fn a_receipt_is_closed_once_however_its_request_ends() {
        let outcomes = Arc::new(Outcomes::default());
        let open = || {
            let mut receipt = Receipt::open(Instant::now());
            receipt.charge_to(outcomes.clone());
            receipt
        };
        assert_eq!(open().answered(7).response_bytes, 7);
        open().failed(ErrorCode::PluginTrapped, 0);
        drop(open());
        let mut left = open();
        left.is_ready(Outcome::Answered, 7);
        drop(left);
        let expected = [
            Outcome::Answered,
            Outcome::Failed(ErrorCode::PluginTrapped),
            Outcome::Abandoned,
            Outcome::Abandoned,
        ];
        assert_eq!(*outcomes.0.lock().unwrap(), expected);
    }
}
