//! The figures of the requests of one pipeline, or of one tenant's requests to one model.
//!
//! [`Totals`] are kept for each of them; they are exact, and small. The figures with all stages and
//! outcomes are [`Details`]: a bounded number of pipelines has details of their own, all others add
//! to the same ones (`label_slots`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use gristmill_core::{LateSink, ModelUse, Name, Named, Outcome, Record, Sink, Stages};

use crate::collected::Collected;
use crate::details::Details;
use crate::histogram::nanos;

/// The pipeline or model that requests go to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestTarget {
    /// A pipeline, by its name.
    Pipeline(Name),
    /// A model that the tenant calls itself, by its name.
    Model(Name),
}

impl RequestTarget {
    /// The attributes `pipeline` and `model`. The one that does not apply is empty.
    fn attributes(&self) -> [&str; 2] {
        match self {
            Self::Pipeline(name) => [name.as_str(), ""],
            Self::Model(name) => ["", name.as_str()],
        }
    }
}

/// The figures of the requests of a tenant to one target.
#[derive(Debug)]
pub struct RequestFigures {
    tenant: Name,
    target: RequestTarget,
    totals: AtomicTotals,
    details: ArcSwap<Details>,
    /// The requests that had ended when the slots were last given out.
    pub(crate) seen: AtomicU64,
}

/// Sums over all requests that ended. Times are those of requests that were answered, unless their
/// name says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests answered.
    pub success: u64,
    /// Requests that failed or were abandoned.
    pub fail: u64,
    /// The time that the answered ones took.
    pub success_time: Duration,
    /// The time that the others took.
    pub fail_time: Duration,
    /// In the preprocessor.
    pub pre: Duration,
    /// In the model's queue.
    pub queue: Duration,
    /// In the model.
    pub infer: Duration,
    /// In the postprocessor.
    pub post: Duration,
    /// When the last one ended.
    pub last: Option<SystemTime>,
}

#[derive(Debug, Default)]
struct AtomicTotals {
    success: AtomicU64,
    fail: AtomicU64,
    success_ns: AtomicU64,
    fail_ns: AtomicU64,
    pre_ns: AtomicU64,
    queue_ns: AtomicU64,
    infer_ns: AtomicU64,
    post_ns: AtomicU64,
    /// Microseconds since 1970; 0 if none ended.
    last_us: AtomicU64,
}

impl RequestFigures {
    /// No requests yet. They will add to these details.
    pub(crate) fn new(tenant: Name, target: RequestTarget, details: Arc<Details>) -> Self {
        Self {
            tenant,
            target,
            totals: AtomicTotals::default(),
            details: ArcSwap::new(details),
            seen: AtomicU64::new(0),
        }
    }

    /// The sums so far.
    pub fn totals(&self) -> Totals {
        let all = &self.totals;
        let time = |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Relaxed));
        let last = Some(all.last_us.load(Relaxed)).filter(|us| *us > 0);
        Totals {
            success: all.success.load(Relaxed),
            fail: all.fail.load(Relaxed),
            success_time: time(&all.success_ns),
            fail_time: time(&all.fail_ns),
            pre: time(&all.pre_ns),
            queue: time(&all.queue_ns),
            infer: time(&all.infer_ns),
            post: time(&all.post_ns),
            last: last.map(|us| UNIX_EPOCH + Duration::from_micros(us)),
        }
    }

    /// The requests that ended so far.
    pub(crate) fn ended(&self) -> u64 {
        self.totals.success.load(Relaxed) + self.totals.fail.load(Relaxed)
    }

    /// Whether it has details of its own.
    pub fn has_slot(&self) -> bool {
        self.details.load().has_slot()
    }

    /// Add to these details from now on. Requests that end just now may add to those before.
    pub(crate) fn move_to(&self, details: Arc<Details>) {
        self.details.store(details);
    }

    /// Add the values of its own details to `collected`, if it has some and any request ended.
    pub fn collect(&self, collected: &mut Collected) {
        let details = self.details.load();
        if details.has_slot() {
            let [pipeline, model] = self.target.attributes();
            details.collect([self.tenant.as_str(), pipeline, model], collected);
        }
    }
}

impl Named for RequestFigures {}

impl Sink for RequestFigures {
    fn record(&self, record: &Record, took: Duration) {
        self.totals.add(record, took);
        self.details.load().add(record);
    }
}

impl LateSink for RequestFigures {
    fn ran_late(&self, used: ModelUse) {
        self.details.load().add_use(used);
    }
}

impl AtomicTotals {
    fn add(&self, record: &Record, took: Duration) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_us.store(now.as_micros() as u64, Relaxed);
        let took = nanos(took);
        if record.outcome != Outcome::Answered {
            self.fail.fetch_add(1, Relaxed);
            self.fail_ns.fetch_add(took, Relaxed);
            return;
        }
        self.success.fetch_add(1, Relaxed);
        self.success_ns.fetch_add(took, Relaxed);
        let Stages { pre, queue, infer, post, .. } = record.stages();
        for (sum, stage) in [
            (&self.pre_ns, pre),
            (&self.queue_ns, queue),
            (&self.infer_ns, infer),
            (&self.post_ns, post),
        ] {
            if let Some(time) = stage {
                sum.fetch_add(nanos(time), Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use gristmill_core::{CallUsage, ErrorCode, ModelRun, PluginCall, Receipt, Span, Stage};

    use super::*;
    use crate::collected::Value;
    use crate::family;
    use crate::label_slots::LabelSlots;

    fn figures(slots: &LabelSlots) -> Arc<RequestFigures> {
        let tenant = "acme".parse().unwrap();
        let target = RequestTarget::Pipeline("digits".parse().unwrap());
        Arc::new(slots.figures(tenant, target))
    }

    fn open(figures: &Arc<RequestFigures>) -> Receipt {
        let mut receipt = Receipt::open(Instant::now());
        receipt.charge_to(figures.clone());
        receipt
    }

    #[test]
    fn each_outcome_counts_once_in_totals_and_details() {
        let slots = LabelSlots::new(1);
        let figures = figures(&slots);
        let mut receipt = open(&figures);
        let record = receipt.note();
        let used = CallUsage {
            cpu: Duration::from_millis(2),
            memory_bytes: 10,
            host_memory_bytes: 5,
            ..CallUsage::default()
        };
        let (took, used) = (Some(Duration::from_millis(1)), Some(used));
        record.spans.push(Span::Call(PluginCall { took, used, ..PluginCall::new(Stage::Pre) }));
        let infer = Duration::from_millis(3);
        record.spans.push(Span::Run(ModelRun {
            staging: Some(Duration::from_millis(1)),
            used: ModelUse { rows: 4, time: Duration::ZERO },
            ..ModelRun::new("digits".parse().unwrap(), Duration::ZERO, infer)
        }));
        receipt.answered(7);
        open(&figures).failed(ErrorCode::ModelFailed, 0);
        drop(open(&figures));
        let totals = figures.totals();
        assert_eq!((totals.success, totals.fail), (1, 2));
        assert_eq!(totals.infer, Duration::from_millis(3));

        let mut collected = Collected::default();
        figures.collect(&mut collected);
        slots.collect_other(&mut collected);
        let value = |family, attributes: &[&str]| {
            let points = collected.families().find(|(other, _)| *other == family).unwrap().1;
            let is_it = |point: &&crate::Point| {
                let point_attributes = point.attributes.iter().map(|text| &**text);
                point_attributes.collect::<Vec<_>>() == attributes
            };
            points.iter().find(is_it).unwrap().value.clone()
        };
        for outcome in ["answered", "abandoned", "model_failed"] {
            let attributes = ["acme", "digits", "", outcome];
            assert_eq!(value(family::REQUESTS, &attributes), Value::Number(1.0));
        }
        let whose = ["acme", "digits", ""];
        assert_eq!(value(family::REQUEST_ROWS, &whose), Value::Number(4.0));
        let Value::Distribution(infer) =
            value(family::STAGE_DURATION, &["acme", "digits", "", "infer"])
        else {
            panic!("not a histogram")
        };
        assert!((infer.sum - 0.002).abs() < 1e-9, "without staging: {}", infer.sum);
        let peak = value(family::PLUGIN_MEMORY_PEAK, &["acme", "digits", "pre"]);
        assert_eq!(peak, Value::Number(15.0));
        let Value::Distribution(all) = value(family::REQUEST_DURATION, &whose) else {
            panic!("not a histogram")
        };
        assert_eq!(all.count(), 3);
    }
}
